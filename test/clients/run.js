// Runs one of the programs beside it against a server: run.js NAME URL. What it has
// seen is the last line of the output.
const [name, url] = process.argv.slice(2);
require('./' + name + '.js')(url).then(
  text => { console.log(text); process.exit(0); },
  e => { console.error(e); process.exit(1); });
