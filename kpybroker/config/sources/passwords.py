"""How passwords of the dynamic configuration are kept: encrypted with `password.encoder.secret`, in Kafka's format.

Kafka's ``EncryptingPasswordEncoder``: `name:value` pairs with commas between them. The key is made of the secret by
PBKDF2, with a salt of its own for each password. What encrypted it is in the text, so that what was written with other
settings is still read. Random bytes are an argument. This needs the package cryptography; no error shows a password.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Final

from kpybroker.config.values import ConfigTextError

if TYPE_CHECKING:
    from kpybroker.config.config_lookup import ConfigLookup

SECRET: Final = "password.encoder.secret"
OLD_SECRET: Final = "password.encoder.old.secret"
CIPHER: Final = "password.encoder.cipher.algorithm"
KEY_FACTORY: Final = "password.encoder.keyfactory.algorithm"
KEY_BITS: Final = "password.encoder.key.length"
ITERATIONS: Final = "password.encoder.iterations"

CBC, GCM = "AES/CBC/PKCS5Padding", "AES/GCM/NoPadding"
SALT_BYTES: Final = 256
IV_BYTES: Final = {CBC: 16, GCM: 12}
TAG_BITS: Final = 128
DEFAULT_KEY_FACTORY: Final = "PBKDF2WithHmacSHA512"
KEY_FACTORIES: Final = {f"PBKDF2WithHmacSHA{name}": f"SHA{name}" for name in ("1", "224", "256", "384", "512")}
ITERATIONS_MAX: Final = 10_000_000

Decode = Callable[[str], str]


class PasswordError(ValueError):
    """A text that cannot be decoded."""


@dataclass(frozen=True, slots=True)
class PasswordEncoder:
    """Encodes as the settings say, and decodes whatever the secret fits."""

    secret: str = field(repr=False)
    cipher: str = CBC
    key_factory: str = DEFAULT_KEY_FACTORY
    key_bits: int = 128
    iterations: int = 4096

    def encode(self, password: str, random_bytes: Callable[[int], bytes]) -> str:
        """The text to store. `random_bytes(n)` must be good for keys."""
        salt, initial = random_bytes(SALT_BYTES), random_bytes(IV_BYTES[self.cipher])
        key = self._key(self.key_factory, salt, self.iterations, self.key_bits)
        encrypted = _encrypt(self.cipher, key, initial, password.encode())
        fields = {  # in the order of Kafka's map
            "initializationVector": _base64(initial),
            "keyLength": str(self.key_bits),
            "salt": _base64(salt),
            "keyFactoryAlgorithm": self.key_factory,
            "cipherAlgorithm": self.cipher,
            **({"authenticationTagLength": str(TAG_BITS)} if self.cipher == GCM else {}),
            "iterations": str(self.iterations),
            "passwordLength": str(_java_length(password)),
            "encryptedPassword": _base64(encrypted),
        }
        return ",".join(f"{name}:{value}" for name, value in fields.items())

    def decode(self, text: str) -> str:
        """The password. Raises PasswordError."""
        fields = {name.strip(): value for name, _, value in (part.partition(":") for part in text.split(","))}
        try:
            iterations = int(fields["iterations"])
            if not 0 < iterations <= ITERATIONS_MAX:
                raise ValueError
            salt = base64.b64decode(fields["salt"])
            key = self._key(fields["keyFactoryAlgorithm"], salt, iterations, int(fields["keyLength"]))
            initial = base64.b64decode(fields["initializationVector"])
            encrypted = base64.b64decode(fields["encryptedPassword"])
            password = _decrypt(fields["cipherAlgorithm"], key, initial, encrypted).decode()
            is_whole = _java_length(password) == int(fields["passwordLength"])
        except (KeyError, ValueError) as error:
            raise PasswordError("Password could not be decoded") from error
        if not is_whole:
            raise PasswordError("Password could not be decoded, sanity check of length failed")
        return password

    def _key(self, factory: str, salt: bytes, iterations: int, bits: int) -> bytes:
        from cryptography.hazmat.primitives import hashes
        from cryptography.hazmat.primitives.kdf.pbkdf2 import PBKDF2HMAC

        algorithm = getattr(hashes, KEY_FACTORIES[factory])()
        derived: bytes = PBKDF2HMAC(algorithm, bits // 8, salt, iterations).derive(self.secret.encode())
        return derived


def encoder(config: ConfigLookup, key: str = SECRET) -> PasswordEncoder | None:
    """As the configuration says; None without a secret. Raises `ConfigTextError` for an algorithm that is not here."""
    secret = config.get_str(key)
    if not secret:
        return None
    if not find_spec("cryptography"):
        raise ConfigTextError(key, f"{key} needs the package cryptography: pip install 'kpybroker[security]'")
    made = PasswordEncoder(
        secret,
        config.get_str(CIPHER),
        config.get_str(KEY_FACTORY) or DEFAULT_KEY_FACTORY,
        config.get_int(KEY_BITS),
        config.get_int(ITERATIONS),
    )
    if made.cipher not in IV_BYTES:
        raise ConfigTextError(CIPHER, f"{CIPHER}={made.cipher} is not available: use {CBC} or {GCM}")
    if made.key_factory not in KEY_FACTORIES:
        raise ConfigTextError(
            KEY_FACTORY, f"{KEY_FACTORY}={made.key_factory} is not available: use one of {', '.join(KEY_FACTORIES)}"
        )
    if made.key_bits not in (128, 192, 256):
        raise ConfigTextError(KEY_BITS, f"{KEY_BITS}={made.key_bits}: AES takes 128, 192 or 256 bits")
    return made


def decoder(config: ConfigLookup) -> Decode | None:
    """Decodes with the secret, or else with the old one; None without a secret. It raises PasswordError."""
    known = [made for made in (encoder(config), encoder(config, OLD_SECRET)) if made is not None]
    if not known:
        return None

    def decode(text: str) -> str:
        for one in known[:-1]:
            try:
                return one.decode(text)
            except PasswordError:
                continue
        return known[-1].decode(text)

    return decode


def renewed(config: ConfigLookup, props: Mapping[str, str], random_bytes: Callable[[int], bytes]) -> dict[str, str]:
    """Those of the stored passwords that only the old secret fits, encoded with the new one."""
    new, old = encoder(config), encoder(config, OLD_SECRET)
    found: dict[str, str] = {}
    if new is None or old is None:
        return found
    for name, text in props.items():
        try:
            new.decode(text)
        except PasswordError:
            try:
                found[name] = new.encode(old.decode(text), random_bytes)
            except PasswordError:
                continue
    return found


def _java_length(text: str) -> int:
    """UTF-16 units, as Java counts characters."""
    return len(text.encode("utf-16-le")) // 2


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode()


def _cipher(name: str, key: bytes, initial: bytes) -> Any:
    from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

    return Cipher(algorithms.AES(key), {CBC: modes.CBC, GCM: modes.GCM}[name](initial))


def _encrypt(name: str, key: bytes, initial: bytes, data: bytes) -> bytes:
    from cryptography.hazmat.primitives.padding import PKCS7

    work = _cipher(name, key, initial).encryptor()
    if name == CBC:
        padder = PKCS7(128).padder()
        data = padder.update(data) + padder.finalize()
    made: bytes = work.update(data) + work.finalize()
    return made + work.tag if name == GCM else made


def _decrypt(name: str, key: bytes, initial: bytes, data: bytes) -> bytes:
    from cryptography.exceptions import InvalidTag
    from cryptography.hazmat.primitives.padding import PKCS7

    work = _cipher(name, key, initial).decryptor()
    if name == GCM:
        data, tag = data[: -TAG_BITS // 8], data[-TAG_BITS // 8 :]
        try:
            return bytes(work.update(data) + work.finalize_with_tag(tag))
        except InvalidTag as error:
            raise ValueError from error
    unpadder = PKCS7(128).unpadder()
    padded = work.update(data) + work.finalize()
    return bytes(unpadder.update(padded) + unpadder.finalize())
