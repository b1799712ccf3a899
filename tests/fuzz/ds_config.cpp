#include "deepspeed/job/ds_config.h"

#include "core/json.h"
#include "fuzz/fuzz.h"

KRIGTUNE_FUZZ(ds_config) {
  const krigtune::Json config = krigtune::deepspeed::read_ds_config(text, "ds_config.json");
  static_cast<void>(krigtune::deepspeed::tunables_of(config, "ds_config.json"));
  static_cast<void>(krigtune::deepspeed::train_batch_size_of(config, 8, "ds_config.json"));
  static_cast<void>(krigtune::deepspeed::ds_config_text(config));
}
