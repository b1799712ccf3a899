#pragma once
#include <optional>
#include <string>
#include <vector>

#include "core/units.h"
#include "search/model/best.h"
#include "search/strategies/strategy.h"
#include "space/configuration.h"

namespace krigtune::report {

/// Fields of CSV tables: what is not available is empty, booleans are true and false, integers have no exponent.
std::string field(std::optional<double> number);
std::string field(std::optional<Bytes> bytes);
std::string field(std::optional<bool> flag);
/// The configuration's values in the order of the columns.
std::vector<std::string> fields(const space::Configuration& configuration, const std::vector<std::string>& columns);
void append(std::vector<std::string>& row, const std::vector<std::string>& more);

/// A number of an ok trial's result. Empty when it is not ok or has none of that name.
std::optional<double> metric_of(const journal::Trial& trial, const std::string& name);
/// What an ok trial measured.
std::optional<Bytes> peak_memory_of(const journal::Trial& trial);

/// Whether the session's results were made over a network that krigtune-bench imitates. Wherever a number of such a
/// session is shown, the label stands beside it.
bool is_emulated(const session::Session& session);
/// "emulated network eth-25", "emulated network 100 us + 250 MB/s", or "" where none is emulated.
std::string emulated_label(const session::Session& session);
/// " (emulated network eth-25)", or "": to be put behind a number.
std::string emulated_note(const session::Session& session);

/// Whether better is faster: throughput, tokens_per_second, flops, latency.
bool is_speed(const session::Objective& objective);

/// For people: "12.3 samples/s", "48.2 ms", "1.25 TFLOP/s"; "160.6" for a metric of the user's own and for a replayed
/// table, whose units are not known.
std::string value_text(const session::Session& session, double value);
/// A value with half of its interval: "12.3 ±0.4 samples/s", "48.2 ±0.3 ms".
std::string value_with_half_width(const session::Session& session, double value, double half_width);
/// The value by its metric: "throughput 12.3 samples/s".
std::string named_value_text(const session::Session& session, double value);
/// The value with its unit, else by its metric's name.
std::string value_or_named_text(const session::Session& session, double value);
/// "1.34x".
std::string gain_text(double gain);
/// Of a fraction, for people: "0.21 %", "13 %", "112 %".
std::string percent_text(double fraction);

/// Three digits at least, none of them behind an exponent: "17.3", "12345".
std::string rate_text(double rate);
/// Of a share of a peak: "46.4 %".
std::string share_text(double share);
/// "MFU: model FLOPs as in PaLM (...), of a peak of 312 TFLOP/s in bf16 a GPU; HFU counts recomputation too": what the
/// numbers beside it mean. "": no GPU with a known peak is named.
std::string mfu_convention(const session::Session& session);

/// A parameter's value as people write it into a session: 4e8, not 400000000.
std::string short_value_text(const space::Value& value);

/// What stands in the place of a value: "OOM", "failed (timeout)", or the value's text.
std::string outcome_text(const session::Session& session, const journal::Trial& trial);

/// "zero_stage=2 micro_batch=4": without parameters that have a single value.
std::string short_text(const session::Session& session, const space::Configuration& configuration);

}  // namespace krigtune::report
