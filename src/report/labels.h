#pragma once
#include <optional>
#include <string>
#include <vector>

#include "answer/answer.h"
#include "core/units.h"
#include "search/model/best.h"
#include "search/strategies/strategy.h"
#include "space/configuration.h"

namespace krigtune::report {

/// Format fields of CSV tables: unavailable values are empty, booleans are true and false, integers have no exponent.
std::string field(std::optional<double> number);
std::string field(std::optional<Bytes> bytes);
std::string field(std::optional<bool> flag);
/// Returns the configuration's values in the order of the columns.
std::vector<std::string> fields(const space::Configuration& configuration, const std::vector<std::string>& columns);
void append(std::vector<std::string>& row, const std::vector<std::string>& more);

/// Returns a metric of a successful trial; empty if the trial did not succeed or lacks the metric.
std::optional<double> metric_of(const journal::Trial& trial, const std::string& name);
/// Returns what a successful trial measured, or nullptr.
const trial::Measured* measured_of(const journal::Trial& trial);
/// Returns the standard error of a successful trial's value, if it is known.
std::optional<double> value_sem_of(const journal::Trial& trial);
/// Returns the measured peak memory of a successful trial.
std::optional<Bytes> peak_memory_of(const journal::Trial& trial);

/// Returns " (emulated network eth-25)", or "", to be appended to every number of such a session.
std::string emulated_note(const session::Session& session);

/// Returns whether better means faster: throughput, tokens_per_second, flops, latency.
bool is_speed(const session::Objective& objective);

/// Formats a value for people: "12.3 samples/s", "48.2 ms", "1.25 TFLOP/s". For a user's own metric and for a replayed
/// table it has the unit that the session states, or none: "160.6".
std::string value_text(const session::Session& session, double value);
/// Does the same for a value of any of the session's objectives; a peak of memory is in GiB and the like.
std::string value_text(const session::Session& session, const session::Objective& objective, double value);
/// Formats a value with half of its interval: "12.3 ±0.4 samples/s", "48.2 ±0.3 ms".
std::string value_with_half_width(const session::Session& session, double value, double half_width);
/// Returns ", the mean of 3 trials", which follows a value; "" for a single one.
std::string mean_text(int measurements);
/// Formats a value with its metric: "throughput 12.3 samples/s".
std::string named_value_text(const session::Session& session, double value);

/// "306.6 to 326.4 samples/s": both ends of an interval, and a unit that they share once.
std::string interval_text(const session::Session& session, double low, double high);
/// Formats a value with its unit or, if it has none, with its metric's name.
std::string value_or_named_text(const session::Session& session, double value);
/// Returns "1.34x".
std::string gain_text(double gain);
/// Formats a fraction for people: "0.21 %", "13 %", "112 %".
std::string percent_text(double fraction);

/// Formats at least three digits, without an exponent: "17.3", "12345".
std::string rate_text(double rate);
/// Formats a share of a peak: "46.4 %".
std::string share_text(double share);
/// Returns the definition of the numbers beside it: "MFU: model FLOPs as in PaLM (...), of a peak of 312 TFLOP/s in
/// bf16 a GPU; HFU counts recomputation too". "" if no GPU with a known peak is named.
std::string mfu_convention(const session::Session& session);

/// Formats a parameter's value as people write it in a session: 4e8 rather than 400000000.
std::string short_value_text(const space::Value& value);

/// Returns why a trial has no value, "timeout", or which limits of the session it breaks, "limit: power_w 312 (limit
/// 300)". Empty for others.
std::string reason_text(const session::Session& session, const journal::Trial& trial);

/// Returns the text shown as a trial's value: "OOM", "failed (timeout)", or the value.
std::string outcome_text(const session::Session& session, const journal::Trial& trial);

/// Returns "zero_stage=2 micro_batch=4", without parameters that have a single value.
std::string short_text(const session::Session& session, const space::Configuration& configuration);

/// Returns a sentence on how little a single trial says, if the session assumes more noise from run to run than usual;
/// otherwise "".
std::string run_noise_sentence(const session::Session& session);

}  // namespace krigtune::report
