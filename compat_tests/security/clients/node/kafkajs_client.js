// kafkajs as a client of a locked broker (compat_tests/security/locked_clients.py): over TLS, with a login by
// SCRAM-SHA-512 or with a certificate of its own.
//
//     NODE_PATH=.../node_modules node kafkajs_client.js < spec.json
//
// It writes the records of the spec, reads as many in a group, commits, and says in JSON lines on stdout where each
// record went and what was read. It ends with 1 and the library's error on stderr. The spec is that of go/main.go.
'use strict'

const fs = require('node:fs')
const { Kafka, Partitioners, logLevel } = require('kafkajs')

const END_AFTER_MS = 90_000
const SESSION_TIMEOUT_MS = 10_000

const spec = JSON.parse(fs.readFileSync(0, 'utf8'))

const say = (event, fields) => process.stdout.write(JSON.stringify({ event, ...fields }) + '\n')

function connection() {
  const ssl = { ca: [fs.readFileSync(spec.ca)] }
  if (spec.certificate) {
    ssl.cert = fs.readFileSync(spec.certificate)
    ssl.key = fs.readFileSync(spec.key)
  }
  const sasl = { mechanism: 'scram-sha-512', username: spec.user, password: spec.password }
  return new Kafka({
    clientId: 'kafkajs',
    brokers: [spec.bootstrap],
    ssl,
    sasl: spec.user ? sasl : undefined,
    retry: { retries: 1 },
    logLevel: logLevel.NOTHING,
  })
}

// send() returns each partition's first offset, so where each record went is noted as it is chosen.
async function write(kafka) {
  const placed = new Map()
  const createPartitioner = () => {
    const choose = Partitioners.DefaultPartitioner()
    return chosen => {
      const partition = choose(chosen)
      placed.set(partition, [...(placed.get(partition) ?? []), Number(chosen.message.headers.number)])
      return partition
    }
  }
  const producer = kafka.producer({ createPartitioner })
  await producer.connect()
  try {
    const messages = spec.records.map((record, number) => ({ ...record, headers: { number: String(number) } }))
    for (const { partition, baseOffset } of await producer.send({ topic: spec.topic, acks: -1, messages })) {
      placed.get(partition).forEach((number, at) => say('sent', { number, partition, offset: Number(baseOffset) + at }))
    }
  } finally {
    await producer.disconnect()
  }
}

// Its offsets are committed at the end of each batch, before disconnect() leaves the group.
async function read(kafka) {
  const consumer = kafka.consumer({ groupId: spec.group, sessionTimeout: SESSION_TIMEOUT_MS })
  await consumer.connect()
  await consumer.subscribe({ topics: [spec.topic], fromBeginning: true })
  let missing = spec.records.length
  await new Promise((resolve, reject) => {
    consumer.on(consumer.events.CRASH, ({ payload }) => reject(payload.error))
    const eachMessage = async ({ partition, message }) => {
      const headers = Object.fromEntries(Object.entries(message.headers).map(([name, data]) => [name, String(data)]))
      const { key, value, offset } = message
      say('read', { partition, offset: Number(offset), key: String(key), value: String(value), headers })
      missing -= 1
      if (missing === 0) resolve()
    }
    consumer.run({ eachMessage }).catch(reject)
  })
  await consumer.disconnect()
}

async function main() {
  const kafka = connection()
  await write(kafka)
  await read(kafka)
}

setTimeout(() => fail(new Error(`no end within ${END_AFTER_MS} ms`)), END_AFTER_MS).unref()

function fail(error) {
  process.stderr.write(`${error.name}: ${error.message}\n`)
  process.exit(1)
}

main().catch(fail)
