-- One study in one file. Labels live in `pair` and `task.chosen_first`; no page is made from either.
CREATE TABLE study (
  id INTEGER PRIMARY KEY CHECK (id = 1),
  record TEXT NOT NULL
) STRICT;

CREATE TABLE profile (
  id INTEGER PRIMARY KEY,
  posts TEXT NOT NULL  -- a JSON list of texts, kept once however many pairs show it
) STRICT;

CREATE TABLE pair (
  id INTEGER PRIMARY KEY,
  source TEXT NOT NULL UNIQUE,  -- its id in the suite
  asker TEXT NOT NULL,
  question TEXT NOT NULL,
  category TEXT NOT NULL,
  profile INTEGER NOT NULL REFERENCES profile (id),
  chosen TEXT NOT NULL,
  rejected TEXT NOT NULL
) STRICT;

CREATE TABLE annotator (
  id INTEGER PRIMARY KEY,
  name TEXT NOT NULL UNIQUE,
  token_hash BLOB,  -- NULL once the person has deleted everything: the link is dead
  consented_at TEXT,
  started_at TEXT,  -- mode self: from here on the person's posts stand
  deleted_at TEXT
) STRICT;

CREATE TABLE session (
  id TEXT PRIMARY KEY,
  annotator INTEGER NOT NULL REFERENCES annotator (id) ON DELETE CASCADE,
  secret_hash BLOB NOT NULL,
  opened_at TEXT NOT NULL
) STRICT;

CREATE TABLE post (
  annotator INTEGER NOT NULL REFERENCES annotator (id) ON DELETE CASCADE,
  position INTEGER NOT NULL,
  text TEXT NOT NULL CHECK (length(text) > 0),
  PRIMARY KEY (annotator, position)
) STRICT;

CREATE TABLE task (
  id INTEGER PRIMARY KEY,
  code TEXT NOT NULL UNIQUE,  -- what the page calls it: random, says nothing
  annotator INTEGER NOT NULL REFERENCES annotator (id) ON DELETE CASCADE,
  pair INTEGER NOT NULL REFERENCES pair (id),
  position INTEGER NOT NULL,
  chosen_first INTEGER NOT NULL CHECK (chosen_first IN (0, 1)),
  UNIQUE (annotator, pair),
  UNIQUE (annotator, position)
) STRICT;

-- Every version of an answer is kept; the highest one counts.
CREATE TABLE answer (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  task INTEGER NOT NULL REFERENCES task (id) ON DELETE CASCADE,
  version INTEGER NOT NULL CHECK (version >= 1),
  saved_at TEXT NOT NULL,
  preference TEXT NOT NULL CHECK (preference IN ('first', 'second', 'unsure')),
  first_factuality INTEGER CHECK (first_factuality BETWEEN 1 AND 5),
  first_relevance INTEGER CHECK (first_relevance BETWEEN 1 AND 5),
  first_helpfulness INTEGER CHECK (first_helpfulness BETWEEN 1 AND 5),
  second_factuality INTEGER CHECK (second_factuality BETWEEN 1 AND 5),
  second_relevance INTEGER CHECK (second_relevance BETWEEN 1 AND 5),
  second_helpfulness INTEGER CHECK (second_helpfulness BETWEEN 1 AND 5),
  reason TEXT NOT NULL DEFAULT '',
  UNIQUE (task, version)
) STRICT;

CREATE VIEW latest AS
  SELECT answer.* FROM answer
  WHERE version = (SELECT max(version) FROM answer AS other WHERE other.task = answer.task);
