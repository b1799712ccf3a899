#include "session/session.h"

#include "core/json.h"
#include "fuzz/fuzz.h"

KRIGTUNE_FUZZ(session) {
  const krigtune::session::Session session =
      krigtune::session::read_session(krigtune::parse_json(text, "session.json"), "session.json", "/nowhere");
  // The session that was read is written out and read again.
  const krigtune::Json whole = krigtune::session::resolved(session);
  static_cast<void>(krigtune::session::read_session(whole, "session.json", "/nowhere"));
}
