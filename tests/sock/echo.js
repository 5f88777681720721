// SPDX-License-Identifier: BSD-2-Clause
// net and http within one process: half-close, back-pressure, keep-alive, a child that is started meanwhile.
'use strict';
const assert = require('assert');
const child = require('child_process');
const crypto = require('crypto');
const http = require('http');
const net = require('net');

const data = crypto.randomBytes(3000000);

function streams() {
  return new Promise((done) => {
    const server = net.createServer({ allowHalfOpen: true }, (s) => s.pipe(s));
    server.listen(0, '127.0.0.1', () => {
      const parts = [];
      const c = net.connect(server.address().port, '127.0.0.1', () => c.end(data));
      c.on('data', (part) => parts.push(part));
      c.on('end', () => {
        assert(Buffer.concat(parts).equals(data));
        server.close(done);
      });
    });
  });
}

function get(agent, port) {
  return new Promise((done, failed) => {
    http.get({ agent, port, host: '127.0.0.1' }, (answer) => {
      const parts = [];
      answer.on('data', (part) => parts.push(part));
      answer.on('end', () => done(Buffer.concat(parts)));
    }).on('error', failed);
  });
}

async function requests() {
  const agent = new http.Agent({ keepAlive: true, maxSockets: 4 });
  const server = http.createServer((_, answer) => answer.end(data));
  await new Promise((done) => server.listen(0, '127.0.0.1', done));
  const { port } = server.address();
  for (let i = 0; i < 3; i++) {
    const all = await Promise.all([1, 2, 3, 4, 5, 6, 7, 8].map(() => get(agent, port)));
    assert(all.every((got) => got.equals(data)));
    assert.strictEqual(child.execFileSync('echo', ['hello'], { encoding: 'utf8' }), 'hello\n');
  }
  agent.destroy();
  await new Promise((done) => server.close(done));
}

function reset() {
  return new Promise((done) => {
    const server = net.createServer((s) => s.on('data', () => s.resetAndDestroy()));
    server.listen(0, '127.0.0.1', () => {
      const c = net.connect(server.address().port, '127.0.0.1', () => c.write('x'));
      c.on('error', (error) => {
        assert.strictEqual(error.code, 'ECONNRESET');
        server.close(done);
      });
    });
  });
}

streams().then(requests).then(reset).then(() => console.log('ok'));
