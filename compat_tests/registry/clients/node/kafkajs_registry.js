// kafkajs' client of a schema registry: node kafkajs_registry.js URL
// What it got is one JSON object on standard output; an error that was not expected ends it with status 1.
'use strict'
const path = require('path')
const modules = process.env.NODE_PATH
const { SchemaRegistry, SchemaType, COMPATIBILITY } = require(path.join(modules, '@kafkajs/confluent-schema-registry'))

const order = { type: 'record', name: 'Order', fields: [{ name: 'id', type: 'long' }] }
const wider = { ...order, fields: [...order.fields, { name: 'note', type: 'string', default: '' }] }
const broken = { ...order, fields: [...order.fields, { name: 'must', type: 'string' }] }
const basket = { type: 'record', name: 'Basket', fields: [{ name: 'first', type: 'Order' }] }
const closed = { type: 'object', properties: { id: { type: 'integer' } }, additionalProperties: false }
const bill = 'syntax = "proto3";\npackage shop;\nmessage Bill {\n  string id = 1;\n}\n'

async function failure(promise) {
  try {
    await promise
  } catch (error) {
    return { name: error.name, status: error.status || 0 }
  }
  return null
}

async function main(url) {
  const registry = new SchemaRegistry({ host: url, retry: { retries: 0 } })
  const avro = (schema, more) => ({ type: SchemaType.AVRO, schema: JSON.stringify(schema), ...more })
  const first = await registry.register(avro(order), { subject: 'orders' })
  const second = await registry.register(avro(wider), { subject: 'orders' })
  const again = await registry.register(avro(order), { subject: 'other' })
  const uses = await registry.register(
    avro(basket, { references: [{ name: 'Order', subject: 'orders', version: 1 }] }),
    { subject: 'basket' }
  )
  const json = await registry.register({ type: SchemaType.JSON, schema: JSON.stringify(closed) }, { subject: 'json' })
  const protobuf = await registry.register({ type: SchemaType.PROTOBUF, schema: bill }, { subject: 'bill' })
  const payloads = {
    avro: await registry.encode(second.id, { id: 7, note: 'x' }),
    basket: await registry.encode(uses.id, { first: { id: 8 } }),
    json: await registry.encode(json.id, { id: 9 }),
    protobuf: await registry.encode(protobuf.id, { id: '10' }),
  }
  const fresh = new SchemaRegistry({ host: url, retry: { retries: 0 } })
  const decoded = {}
  for (const [name, payload] of Object.entries(payloads)) decoded[name] = await fresh.decode(payload)
  console.log(
    JSON.stringify({
      ids: [first, second, again, uses, json, protobuf].map((one) => one.id),
      latest: await fresh.getLatestSchemaId('orders'),
      byVersion: await fresh.getRegistryId('orders', 1),
      bySchema: await fresh.getRegistryIdBySchema('orders', avro(wider)),
      prefixes: Object.values(payloads).map((payload) => payload.subarray(0, 5).toString('hex')),
      decoded,
      incompatible: await failure(registry.register(avro(broken), { subject: 'orders' })),
      missing: await failure(fresh.getSchema(99)),
      invalid: await failure(fresh.encode(json.id, { id: 'x' })),
      level: COMPATIBILITY.BACKWARD,
    })
  )
}

main(process.argv[2]).catch((error) => {
  console.error(error)
  process.exit(1)
})
