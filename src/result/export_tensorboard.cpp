// Writes TensorBoard's event files without TensorFlow; trial/event_file.cpp reads such files and describes their
// framing. A folder is a run: one for the session, with the objective of each trial and the best so far, and one for
// each trial, with its metrics and the data of the HParams dashboard. These messages are added to those that
// trial/event_file.cpp reads (tensorflow/core/framework/summary.proto,
// tensorboard/plugins/hparams/{plugin_data,api}.proto, google/protobuf/struct.proto):
//
//   Event            3 file_version
//   Value            8 tensor  9 metadata: SummaryMetadata
//   SummaryMetadata  1 plugin_data {1 plugin_name, 2 content: HParamsPluginData}
//   HParamsPluginData 2 experiment  3 session_start_info  4 session_end_info
//   Experiment       1 description  3 time_created_secs: double  4 hparam_infos  5 metric_infos
//   HParamInfo       1 name  4 type (1 string, 2 bool, 3 float64)      MetricInfo  1 name {2 tag}
//   SessionStartInfo 1 hparams: map, repeated {1 key, 2 Value}  5 start_time_secs: double
//   SessionEndInfo   1 status (1 success, 2 failure)  2 end_time_secs: double
//   google.protobuf.Value  2 number_value: double  3 string_value  4 bool_value
#include <fmt/format.h>

#include <bit>

#include "core/clock.h"
#include "report/labels.h"
#include "result/export.h"
#include "search/model/limit_models.h"
#include "search/trials/run_effects.h"
#include "trial/event_file.h"

namespace krigtune::result {
namespace {

constexpr const char* kFolder = "tensorboard";
constexpr const char* kEventFile = "events.out.tfevents.krigtune";  // TensorBoard recognises it by "tfevents"
constexpr const char* kBestSoFar = "best_so_far";

std::string little_endian(std::uint64_t value, int bytes) {
  std::string text;
  for (int i = 0; i < bytes; ++i) text += static_cast<char>(static_cast<unsigned char>(value >> (8 * i)));
  return text;
}

/// Builds a message in protobuf's wire format, field by field.
class Message {
 public:
  Message& bytes(int number, const std::string& value) {
    key(number, 2);
    varint(value.size());
    text_ += value;
    return *this;
  }
  Message& message(int number, const Message& value) { return bytes(number, value.text_); }
  Message& integer(int number, std::uint64_t value) {
    key(number, 0);
    varint(value);
    return *this;
  }
  Message& real(int number, double value) {
    key(number, 1);
    text_ += little_endian(std::bit_cast<std::uint64_t>(value), 8);
    return *this;
  }
  Message& single(int number, float value) {
    key(number, 5);
    text_ += little_endian(std::bit_cast<std::uint32_t>(value), 4);
    return *this;
  }
  const std::string& text() const { return text_; }

 private:
  void key(int number, unsigned wire_type) { varint(static_cast<std::uint64_t>(number) << 3U | wire_type); }
  void varint(std::uint64_t value) {
    for (; value >= 0x80U; value >>= 7U) text_ += static_cast<char>(static_cast<unsigned char>(value | 0x80U));
    text_ += static_cast<char>(static_cast<unsigned char>(value));
  }

  std::string text_;
};

/// The content of one event file.
class EventFile {
 public:
  explicit EventFile(double wall_time_s) { add(Message().real(1, wall_time_s).bytes(3, "brain.Event:2")); }

  void scalar(const std::string& tag, std::int64_t step, double wall_time_s, double value) {
    summary(step, wall_time_s, Message().bytes(1, tag).single(2, static_cast<float>(value)));
  }
  /// Adds data for the HParams dashboard; `part` is the message of that field of HParamsPluginData.
  void hparams(const char* tag, double wall_time_s, int field, const Message& part) {
    const Message plugin = Message().bytes(1, "hparams").bytes(2, Message().message(field, part).text());
    // TensorBoard's own writer adds an empty tensor that nobody reads, so this one does too.
    const Message tensor = Message().integer(1, 1).message(2, Message().bytes(2, ""));
    summary(0, wall_time_s, Message().bytes(1, tag).message(8, tensor).message(9, Message().message(1, plugin)));
  }
  const std::string& text() const { return text_; }

 private:
  void summary(std::int64_t step, double wall_time_s, const Message& value) {
    Message event;
    event.real(1, wall_time_s);
    if (step != 0) event.integer(2, static_cast<std::uint64_t>(step));
    add(event.message(5, Message().message(1, value)));
  }
  void add(const Message& event) {
    const std::string length = little_endian(event.text().size(), 8);
    text_ += length + little_endian(trial::masked_crc32c(length), 4) + event.text() +
             little_endian(trial::masked_crc32c(event.text()), 4);
  }

  std::string text_;
};

double start_s(const journal::Trial& trial) {
  constexpr double kMicro = 1e-6;
  return static_cast<double>(unix_us_of(trial.started_at).value_or(0)) * kMicro;
}

Message protobuf_value(const space::Value& value) {
  if (const bool* flag = std::get_if<bool>(&value)) return Message().integer(4, *flag ? 1 : 0);
  if (space::is_number(value)) return Message().real(2, space::as_number(value));
  return Message().bytes(3, space::to_string(value));
}

std::uint64_t type_of(const space::Value& value) {
  constexpr std::uint64_t kString = 1, kBool = 2, kFloat64 = 3;
  if (std::holds_alternative<bool>(value)) return kBool;
  return space::is_number(value) ? kFloat64 : kString;
}

std::string tag_of(const report::RunView& run) { return run.session.objective.metric; }

// Describes the columns and metrics of the HParams table.
Message experiment(const report::RunView& run, const std::vector<journal::Trial>& trials) {
  Message made;
  made.bytes(1, fmt::format("krigtune: {}{}", run.name, report::emulated_note(run.session)));
  if (!trials.empty()) made.real(3, start_s(trials.front()));
  for (const std::string& name : run.session.space.columns()) {
    Message info;
    info.bytes(1, name);
    for (const journal::Trial& trial : trials) {
      if (const space::Value* value = trial.proposal.configuration.find(name)) {
        info.integer(4, type_of(*value));
        break;
      }
    }
    made.message(4, info);
  }
  std::vector<std::string> tags = {tag_of(run)};
  for (const journal::Trial& trial : trials) {
    if (report::peak_memory_of(trial) && tags.size() == 1) tags.emplace_back("peak_memory_bytes");
  }
  for (const std::string& tag : tags) made.message(5, Message().message(1, Message().bytes(2, tag)));
  return made;
}

std::string session_events(const report::RunView& run, const std::vector<journal::Trial>& trials) {
  const session::Objective& objective = run.session.objective;
  EventFile events(trials.empty() ? 0.0 : start_s(trials.front()));
  events.hparams("_hparams_/experiment", trials.empty() ? 0.0 : start_s(trials.front()), 2, experiment(run, trials));
  std::optional<double> best;
  for (const journal::Trial& trial : trials) {
    const std::optional<double> value = search::value_of(trial, objective);
    const double end_s = start_s(trial) + trial.wall_s;
    if (value) events.scalar(tag_of(run), trial.number, end_s, *value);
    const bool is_within = search::broken_limits(run.session, trial).empty();
    if (value && is_within && (!best || objective.better(*value, *best))) best = value;
    if (best) events.scalar(fmt::format("{}/{}", kBestSoFar, tag_of(run)), trial.number, end_s, *best);
  }
  return events.text();
}

// Adds the scalars of a trial at its number: the metrics that it measured, or else its bound.
void add_scalars(EventFile& events, const journal::Trial& trial, const report::RunView& run) {
  const double end_s = start_s(trial) + trial.wall_s;
  const auto add = [&](const std::string& tag, double value) { events.scalar(tag, trial.number, end_s, value); };
  if (const auto* bounded = std::get_if<trial::Bounded>(&*trial.outcome)) add(tag_of(run) + "/bound", bounded->at_best);
  const trial::Measured* measured = report::measured_of(trial);
  if (measured == nullptr) return;
  if (const auto value = search::value_of(trial, run.session.objective)) add(tag_of(run), *value);
  for (const auto& [name, value] : measured->metrics) {
    if (name != tag_of(run) && name != run.session.objective.field) add(name, value);
  }
  if (measured->peak_memory) add("peak_memory_bytes", static_cast<double>(measured->peak_memory->count));
}

std::string trial_events(const report::RunView& run, const journal::Trial& trial) {
  constexpr std::uint64_t kSuccess = 1, kFailure = 2;
  EventFile events(start_s(trial));
  Message start;
  for (const auto& [name, value] : trial.proposal.configuration) {
    start.message(1, Message().bytes(1, name).message(2, protobuf_value(value)));
  }
  events.hparams("_hparams_/session_start_info", start_s(trial), 3, start.real(5, start_s(trial)));
  add_scalars(events, trial, run);
  const bool is_failure = !trial::ran(*trial.outcome);
  const double end_s = start_s(trial) + trial.wall_s;
  events.hparams("_hparams_/session_end_info", end_s, 4,
                 Message().integer(1, is_failure ? kFailure : kSuccess).real(2, end_s));
  return events.text();
}

}  // namespace

Export export_tensorboard(const report::RunView& run, const std::filesystem::path& directory) {
  std::vector<journal::Trial> trials;
  for (const journal::Trial& trial : run.history) {
    if (trial.outcome) trials.push_back(trial);
  }
  Export made;
  made.files.push_back({fmt::format("{}/{}", kFolder, kEventFile), session_events(run, trials),
                        fmt::format("tensorboard --logdir {} shows scalars by trial, and HParams the table of trials",
                                    (directory / kFolder).string())});
  for (const journal::Trial& trial : trials) {
    made.files.push_back(
        {fmt::format("{}/trial_{:04}/{}", kFolder, trial.number, kEventFile), trial_events(run, trial), ""});
  }
  return made;
}

}  // namespace krigtune::result
