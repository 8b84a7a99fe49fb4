"""Passwords in the format of Kafka's PasswordEncoder; the vectors are Kafka 3.9.1's."""

from __future__ import annotations

import os

import pytest

from kpybroker.config.broker import BrokerConfig
from kpybroker.config.sources.passwords import CBC, GCM, PasswordEncoder, PasswordError, decoder, encoder, renewed
from kpybroker.config.values import ConfigError

PASSWORD = "pässword"
KAFKAS_CBC = (
    "initializationVector:dYuVMwdPC+jtVOSizpetYA==,keyLength:128,"
    "salt:v/o73DvgciDcB4xzOsAodkuRp24cMizPv/bTORIYnbUZCVUJfdzGzuBWGkqv0N6KlOLsbkkwv1y3a/0nehoQEwcPIhjbzYNWRatmWxrUbv0l"
    "6WkDgRTfnYXlBMLU8unCwzko2E9uGzmfcSps5rbHjUmtReBubdpIKiB6uZxYAfqEkk5JH22zwD2BedLJbmrzewf0DlYAz4Ce7EaaP1wymb/zeCTD7HjM"
    "5T0ItbnNp713zJYG3cJxMbKaxWChOtn64px13LqiRH8LS4FJik/cJKCcJkPs0Se0IGRK4sKoc3JynrNcFjdsx6yGg7peTu+eJBZRMhZPmIqs3NKngEGO"
    "BQ==,keyFactoryAlgorithm:PBKDF2WithHmacSHA512,cipherAlgorithm:AES/CBC/PKCS5Padding,iterations:4096,passwordLength:8,"
    "encryptedPassword:b9Llp/rkz8rMIzEqIllWSA=="
)
KAFKAS_GCM = (
    "initializationVector:pxn4FnQAHnp0bq+4,keyLength:128,"
    "salt:iCtVg5DBnZycBIf3IyJ2kWZ8TNWe6+S99xQT3+KnthwKkFHarBDtZY5/LtM6FpXbyiJB4MDREcW57jcUqcr/OrZd4NWonfxnTZo4H28ucrsL"
    "luzRDYd+bqllq8AEYllsCt4BGfRW/U+gLnRdE/mCne09HyCSVMnyOm5+Dq3tTeGDBn8tYgz0D7lo62VD0kPJz44LmPUhFbC0IC0yfHpb1bgh3+QFygzh"
    "MQpUySt3bQKP4WHvyAzv+N2Z07hzocF3OxRFEFnK6n77Kmy3WATaHlou8gOWuSb2/UmOIp0dQfLCw8L8w2ZumBTDRD6zzBBQbnBcc40XaBLjplVOCcYU"
    "sA==,keyFactoryAlgorithm:PBKDF2WithHmacSHA1,cipherAlgorithm:AES/GCM/NoPadding,authenticationTagLength:128,"
    "iterations:4096,passwordLength:8,encryptedPassword:Ui7XOnT1w9uyLBZR6Psk3X1P5kOUiBZrjA=="
)
ENCODER = PasswordEncoder("the secret")


@pytest.mark.parametrize("text", [KAFKAS_CBC, KAFKAS_GCM], ids=["cbc", "gcm"])
def test_what_kafka_has_written_is_read_whatever_the_settings_are_now(text: str) -> None:
    assert ENCODER.decode(text) == PASSWORD
    with pytest.raises(PasswordError, match="could not be decoded"):
        PasswordEncoder("another").decode(text)


def names(text: str) -> list[str]:
    return [part.partition(":")[0] for part in text.split(",")]


@pytest.mark.parametrize(("cipher", "kafkas"), [(CBC, KAFKAS_CBC), (GCM, KAFKAS_GCM)], ids=["cbc", "gcm"])
def test_the_parts_are_in_kafkas_order(cipher: str, kafkas: str) -> None:
    assert names(PasswordEncoder("s", cipher).encode(PASSWORD, os.urandom)) == names(kafkas)


@pytest.mark.parametrize("cipher", [CBC, GCM])
@pytest.mark.parametrize("password", ["", "x", PASSWORD, "sixteen letters.", "😀" * 50, "a,b:c\n"])
def test_a_password_comes_back(cipher: str, password: str) -> None:
    made = PasswordEncoder("s", cipher, "PBKDF2WithHmacSHA256", 256, 1024)
    text = made.encode(password, os.urandom)
    assert made.decode(text) == password
    assert made.encode(password, os.urandom) != text, "each has a salt of its own"
    assert set(names(text)) >= {"salt", "keyLength", "passwordLength"}


@pytest.mark.parametrize(
    "text",
    ["", "plain", KAFKAS_CBC.replace("passwordLength:8", "passwordLength:9"), KAFKAS_CBC.replace("keyLength:128,", ""),
     KAFKAS_CBC.replace("iterations:4096", "iterations:99999999999"), KAFKAS_CBC.replace("SHA512", "MD5")],
)  # fmt: skip
def test_what_is_not_a_password_is_refused(text: str) -> None:
    with pytest.raises(PasswordError):
        ENCODER.decode(text)


def test_the_secret_is_in_no_text() -> None:
    assert "the secret" not in repr(ENCODER)


def test_the_settings_choose_how_passwords_are_kept() -> None:
    assert encoder(BrokerConfig()) is None
    assert decoder(BrokerConfig()) is None
    made = encoder(BrokerConfig({"password.encoder.secret": "s", "password.encoder.cipher.algorithm": GCM}))
    assert made is not None
    assert (made.cipher, made.key_bits, made.iterations) == (GCM, 128, 4096)


@pytest.mark.parametrize(
    ("key", "value"), [("cipher.algorithm", "DES"), ("keyfactory.algorithm", "MD5"), ("key.length", "100")]
)
def test_what_is_not_available_ends_the_start(key: str, value: str) -> None:
    with pytest.raises(ConfigError, match=f"password.encoder.{key}"):
        BrokerConfig({"password.encoder.secret": "s", f"password.encoder.{key}": value})


def test_the_old_secret_reads_what_is_then_encoded_with_the_new_one() -> None:
    config = BrokerConfig({"password.encoder.secret": "new", "password.encoder.old.secret": "the secret"})
    decode = decoder(config)
    assert decode is not None
    assert decode(KAFKAS_CBC) == PASSWORD
    kept = PasswordEncoder("new").encode("kept", os.urandom)
    changed = renewed(config, {"a": KAFKAS_CBC, "b": kept, "c": "damaged"}, os.urandom)
    assert changed.keys() == {"a"}
    assert PasswordEncoder("new").decode(changed["a"]) == PASSWORD
