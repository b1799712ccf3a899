#include "fuzz/fuzz.h"
#include "jobs/session/script_default.h"

// A training script, in which the defaults of flags are looked for.
KRIGTUNE_FUZZ(script) {
  for (const char* flag : {"--mbs", "--learning-rate", "-b"})
    static_cast<void>(krigtune::jobs::default_in_script(text, flag));
}
