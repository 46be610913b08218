function (newDoc, oldDoc, userCtx, secObj) {
  function refuse(reason) { throw ({ forbidden: reason }); }
  function holds(list, value) { return Array.isArray(list) && list.indexOf(value) >= 0; }
  function owns(doc) { return !!doc.name && doc.name === userCtx.name; }

  var serverAdmin = holds(userCtx.roles, '_admin');
  if (newDoc._deleted === true) {
    if (!serverAdmin && !(oldDoc && owns(oldDoc))) { refuse('Only admins may delete other user docs.'); }
    return;
  }

  if (newDoc.type !== 'user') { refuse('doc.type must be user'); }
  if (!newDoc.name) { refuse('doc.name is required'); }
  if (!newDoc.roles) { refuse('doc.roles must exist'); }
  if (!Array.isArray(newDoc.roles)) { refuse('doc.roles must be an array'); }
  newDoc.roles.forEach(function (role) {
    if (typeof role !== 'string') { refuse('doc.roles can only contain strings'); }
  });
  if (typeof newDoc.name !== 'string' || newDoc._id !== 'org.couchdb.user:' + newDoc.name) {
    refuse('Doc ID must be of the form org.couchdb.user:name');
  }
  if (oldDoc && oldDoc.name !== newDoc.name) { refuse('Usernames can not be changed.'); }

  if (newDoc.password_sha && !newDoc.salt) {
    refuse('Users with password_sha must have a salt.See /_utils/script/couch.js for example code.');
  }
  if (newDoc.password_scheme && !holds(['simple', 'pbkdf2', 'simple+pbkdf2'], newDoc.password_scheme)) {
    refuse('Password scheme `' + newDoc.password_scheme + '` not supported.');
  }
  if (newDoc.password_scheme === 'pbkdf2') {
    if (typeof newDoc.iterations !== 'number') { refuse('iterations must be a number.'); }
    if (typeof newDoc.derived_key !== 'string') { refuse('derived_key must be a string.'); }
  }

  var admins = secObj && secObj.admins || {};
  var admin = serverAdmin || userCtx.name !== null && holds(admins.names, userCtx.name) ||
    userCtx.roles.some(function (role) { return holds(admins.roles, role); });
  if (!admin && !oldDoc && newDoc.roles.length > 0) { refuse('Only _admin may set roles'); }
  if (!admin && oldDoc) {
    if (!owns(newDoc)) { refuse('You may only update your own user document.'); }
    var kept = oldDoc._deleted !== true && Array.isArray(oldDoc.roles); // nobody judged the roles of a deletion
    var before = kept ? oldDoc.roles.slice().sort() : [];
    if (JSON.stringify(before) !== JSON.stringify(newDoc.roles.slice().sort())) { refuse('Only _admin may edit roles'); }
  }

  newDoc.roles.forEach(function (role) { // _metrics may be given
    if (role.charAt(0) === '_' && role !== '_metrics') {
      refuse('No system roles (starting with underscore) in users db.');
    }
  });
  if (newDoc.name.charAt(0) === '_') { refuse('Username may not start with underscore.'); }
  if (newDoc.name.indexOf(':') >= 0) { refuse('Character `:` is not allowed in usernames.'); }
}
