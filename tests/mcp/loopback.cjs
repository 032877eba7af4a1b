// For NODE_OPTIONS=--require=…: the suite's mock servers and the everything server listen on all interfaces, and cannot be
// told otherwise. A listening socket without an address gets that of this machine.
'use strict';
const { Server } = require('net');
const listen = Server.prototype._listen2;
Server.prototype._listen2 = function (address, port, kind, ...others) {
  const isOpen = address == null && typeof port === 'number' && port >= 0 && kind !== -1;
  return isOpen ? listen.call(this, '127.0.0.1', port, 4, ...others) : listen.call(this, address, port, kind, ...others);
};
