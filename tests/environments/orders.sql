CREATE TABLE orders (id TEXT PRIMARY KEY, item TEXT NOT NULL, qty INTEGER NOT NULL CHECK (qty > 0)) WITHOUT ROWID;
CREATE TABLE notes (number INTEGER PRIMARY KEY AUTOINCREMENT, about TEXT REFERENCES orders (id), text TEXT);
CREATE TABLE visits (page TEXT);
CREATE TABLE labels (name TEXT PRIMARY KEY, colour TEXT);
CREATE TABLE audit (seq INTEGER PRIMARY KEY, what TEXT);
INSERT INTO orders VALUES ('o1', 'kettle', 1), ('o2', 'lamp', 2), ('o3', 'chair', 4);
INSERT INTO notes (about, text) VALUES ('o1', 'blue');
INSERT INTO labels VALUES ('old', 'red'), ('new', 'blue');
