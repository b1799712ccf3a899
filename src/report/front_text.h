#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "report/run_view.h"

namespace krigtune::report {

/// Returns "trial 7: throughput 12.3 samples/s, peak_memory_bytes 31.2 GiB (zero_stage=2 micro_batch=4)", a line for
/// each member of the front, the best by the first objective first. Empty with one objective.
std::vector<std::string> front_lines(const session::Session& session, const std::vector<search::FrontMember>& front);

/// Returns "throughput 12.3 samples/s, peak_memory_bytes 31.2 GiB".
std::string values_text(const session::Session& session, const search::FrontMember& member);

/// Returns "a front of 5 configurations: throughput 8.1 to 12.3 samples/s, peak_memory_bytes 14 GiB to 31.2 GiB"; ""
/// with one objective.
std::string front_sentence(const session::Session& session, const std::vector<search::FrontMember>& front);

/// Returns "trial 7, throughput 12.3 samples/s, peak_memory_bytes 31.2 GiB", with " (throughput >= 0.95 best)" if the
/// session prefers it; "" if there is no front.
std::string pick_text(const session::Session& session, const answer::Answer& answer);

/// Returns "about throughput, the first of 2 objectives", for what knows only the first; "" with one objective.
std::string first_objective_note(const session::Session& session);

/// Returns {"prefer": what the session prefers or null, "pick": the trial of Answer::pick or null}.
nlohmann::ordered_json pick_json(const session::Session& session, const answer::Answer& answer);

/// Returns the front for programs: a list of objects with trial, configuration, measurements, and the values by the
/// metrics' names. Null with one objective.
nlohmann::ordered_json front_json(const session::Session& session, const std::vector<search::FrontMember>& front);

}  // namespace krigtune::report
