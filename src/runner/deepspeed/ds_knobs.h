#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "krigtune/core/json.h"
#include "krigtune/runner/deepspeed/ds_config.h"
#include "krigtune/space/well_known.h"

// What ds_config.cpp, ds_batch.cpp and ds_values.cpp share of the file's knobs. Private to this room.
namespace krigtune {

/// How a key of ds_config.json is spelt where there are two names for it; the table's own first.
std::vector<std::string> spellings_of(const WellKnownParameter& knob);

/// The one of that name; nullptr: the file does not have it.
const DsTunable* find_tunable(const std::vector<DsTunable>& tunables, const std::string& name);

/// The number that the file gives a knob: fixed, or the first of a list. Empty: "auto" or absent.
std::optional<std::int64_t> number_in_file(const std::vector<DsTunable>& tunables, const std::string& name);

/// train_batch_size where it is a number. Throws UserError for a list and for what is neither number nor "auto".
std::optional<std::int64_t> written_train_batch_size(const Json& config, const std::string& source);

}  // namespace krigtune
