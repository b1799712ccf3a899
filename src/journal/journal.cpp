// The writer. Every append happens under the lock, after reading what other processes have appended. The appended lines
// are then replayed like any other, so trials() says exactly what a reader of the file would say.
#include "journal/journal.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <stdexcept>
#include <string_view>

#include "core/clock.h"
#include "core/error.h"
#include "core/files.h"
#include "core/text.h"
#include "journal/append_file.h"
#include "journal/distributions.h"
#include "journal/lock.h"
#include "journal/replayed_study.h"
#include "journal/trial_record.h"

namespace krigtune::journal {

struct Journal::Impl {
  using Lines = std::vector<Json>;

  AppendFile file;
  std::vector<space::Parameter> parameters;
  std::string metric;
  SystemClock clock;
  ReplayedStudy study;
  std::size_t applied_bytes = 0;

  Impl(std::filesystem::path path, const space::Space& space, std::string the_metric)
      : file(std::move(path)),
        parameters(space.parameters()),
        metric(std::move(the_metric)),
        study(file.path().string()) {
    std::vector<std::string> required;
    for (const space::Parameter& parameter : parameters) {
      if (!parameter.when) required.push_back(parameter.name);
    }
    study.require(required);
  }

  Json line(JournalOperation operation) const {
    return {{"op_code", static_cast<int>(operation)}, {"worker_id", fmt::format("krigtune-{}", ::getpid())}};
  }

  Json study_line(JournalOperation operation) const {
    Json json = line(operation);
    json["study_id"] = 0;
    return json;
  }

  Json trial_line(JournalOperation operation, int trial_id) const {
    Json json = line(operation);
    json["trial_id"] = trial_id;
    return json;
  }

  void catch_up() {
    if (file.size_bytes() < applied_bytes) {
      throw EnvironmentError(fmt::format("'{}' has become shorter: another program changed it", file.path().string()),
                             "put a copy of it back, or start over with --fresh");
    }
    applied_bytes += study.apply(file.read_from(applied_bytes));
  }

  // Another program may have removed or replaced the file. This process still has the old one open, so it saves all
  // trials, with the lines to be appended, in a file beside it.
  void refuse_a_lost_file(const std::string& lines) const {
    if (file.is_in_place()) return;
    const std::string whole = file.read_from(0).substr(0, applied_bytes) + lines;
    const std::string kept = fmt::format("{}.kept{}", file.path().string(), ::getpid());
    const bool is_kept = write_if_possible(kept, whole);
    throw EnvironmentError(
        fmt::format("'{}' was removed or replaced by another program while it was in use", file.path().string()),
        is_kept ? fmt::format("all trials until now are in '{}': move it back, and run the same command again", kept)
                : "put a copy of it back, or start over with --fresh");
  }

  // `room_bytes`: how many bytes to reserve behind the lines, if there are any lines.
  void append(const std::function<Lines()>& make_lines, std::size_t room_bytes = 0) {
    const ScopedByteLock turn(file.descriptor(), LockedByte::kAppend);
    const SymlinkLock lock(file.path(), clock, turn.excludes() ? OwnLink::kIsLeftover : OwnLink::kIsAwaited);
    catch_up();
    std::string text;
    for (const Json& json : make_lines()) text += json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
    refuse_a_lost_file(text);
    if (text.empty()) return;
    file.cut_at(applied_bytes);
    if (room_bytes > 0) file.reserve(text.size() + room_bytes);
    file.append(text);
    applied_bytes += study.apply(text);
  }

  // Room for the results of the running trials and of one more: a result that cost a trial must not meet a full disk.
  std::size_t room_for_ends() const {
    constexpr std::size_t kBytesPerEnd = 16 << 10;  // mostly last_lines; a usual result has 2 KiB
    const auto is_open = [](const Trial& trial) { return !trial.outcome; };
    const auto open = std::count_if(study.trials().begin(), study.trials().end(), is_open);
    return kBytesPerEnd * (static_cast<std::size_t>(open) + 4);
  }

  // A file that does not begin like a journal belongs to somebody else, and must not be truncated.
  void refuse_other_files() const {
    constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";  // an editor may have added it
    std::string begin = file.read_from(0, kByteOrderMark.size() + 1);
    if (begin.starts_with(kByteOrderMark)) begin.erase(0, kByteOrderMark.size());
    if (begin.empty() || begin.front() == '{') return;
    throw UserError(fmt::format("{}: line 1: not a JSON object", file.path().string()),
                    "choose another directory with --out");
  }

  void check_study(bool maximize) const {
    if (!study.exists()) return;
    const std::string source = file.path().string();
    const std::string hint = "choose another directory with --out, or start over with --fresh";
    if (!study.metric().empty() && study.metric() != metric) {
      throw UserError(fmt::format("{}: its metric is '{}', not '{}'", source, study.metric(), metric), hint);
    }
    if (study.direction() != (maximize ? kMaximize : kMinimize)) {
      throw UserError(fmt::format("{}: it does not {} '{}'", source, maximize ? "maximize" : "minimize", metric), hint);
    }
  }

  Lines study_lines(bool maximize) const {
    Lines lines;
    if (!study.exists()) {
      Json create = line(JournalOperation::kCreateStudy);
      create["study_name"] = kStudyName;
      create["directions"] = Json::array({maximize ? kMaximize : kMinimize});
      lines.push_back(create);
    }
    if (study.metric().empty()) {
      Json name = study_line(JournalOperation::kSetStudySystemAttr);
      name["system_attr"][kMetricNames] = Json::array({metric});
      lines.push_back(name);
    }
    return lines;
  }

  // The first line of a trial has the configuration and everything needed to rebuild the trial, so it is either
  // complete or absent. The parameter lines that follow are only for Optuna.
  Lines begin_lines(const Proposal& proposal, std::int64_t started_us) const {
    Json create = study_line(JournalOperation::kCreateTrial);
    create["datetime_start"] = local_iso_time(started_us);
    create["user_attrs"] = proposal_attributes(proposal);
    Lines lines = {create};
    const int id = study.next_id();
    for (const space::Parameter& parameter : parameters) {
      const space::Value* value = proposal.configuration.find(parameter.name);
      if (value == nullptr) continue;
      const Json* last = study.distribution(parameter.name);
      const std::optional<Json> distribution =
          last == nullptr ? first_distribution(parameter, *value) : widened(*last, *value);
      if (!distribution) continue;
      Json set = trial_line(JournalOperation::kSetTrialParam, id);
      set["param_name"] = parameter.name;
      set["param_value_internal"] = internal_value(*distribution, *value);
      set["distribution"] = distribution->dump();
      lines.push_back(set);
    }
    return lines;
  }

  void set_attribute(int trial, const char* name, const Json& value) {
    append([&]() -> Lines {
      Json line = trial_line(JournalOperation::kSetTrialUserAttr, study.id_of(trial));
      line["user_attr"][name] = value;
      return {line};
    });
  }

  Lines end_lines(int trial, const trial::Outcome& outcome, double wall_s, std::int64_t ended_us,
                  const std::string& where) const {
    OutcomeRecord record = outcome_record(trial::usable(outcome, metric), metric);
    record.user_attributes["wall_s"] = std::isfinite(wall_s) ? wall_s : 0.0;
    if (!where.empty()) record.user_attributes[kWhere] = where;
    const int id = study.id_of(trial);
    Lines lines;
    for (const auto& [name, value] : record.user_attributes.items()) {
      lines.push_back(trial_line(JournalOperation::kSetTrialUserAttr, id));
      lines.back()["user_attr"][name] = value;
    }
    for (const auto& [name, value] : record.system_attributes.items()) {
      lines.push_back(trial_line(JournalOperation::kSetTrialSystemAttr, id));
      lines.back()["system_attr"][name] = value;
    }
    Json state = trial_line(JournalOperation::kSetTrialStateValues, id);
    state["state"] = static_cast<int>(record.state);
    state["values"] = record.values;
    // Optuna reads the start time from the first line; the dashboard's own reader takes it from this one.
    state["datetime_start"] = study.trials()[static_cast<std::size_t>(trial)].started_at;
    state["datetime_complete"] = local_iso_time(ended_us);
    lines.push_back(state);
    return lines;
  }
};

std::optional<std::int64_t> end_us_of(const Trial& trial) {
  constexpr double kMicroseconds = 1e6;
  if (const std::optional<std::int64_t> ended = unix_us_of(trial.ended_at)) return ended;
  const std::optional<std::int64_t> began = unix_us_of(trial.started_at);
  return began ? std::optional(*began + static_cast<std::int64_t>(trial.wall_s * kMicroseconds)) : std::nullopt;
}

Journal::Journal(std::filesystem::path file, const space::Space& space, std::string metric, bool maximize)
    : impl_(std::make_unique<Impl>(std::move(file), space, std::move(metric))) {
  impl_->refuse_other_files();
  impl_->catch_up();
  impl_->check_study(maximize);  // check before writing anything
  impl_->append([&] {
    impl_->check_study(maximize);
    return impl_->study_lines(maximize);
  });
}

Journal::~Journal() = default;

const std::vector<Trial>& Journal::trials() const { return impl_->study.trials(); }

const std::vector<std::string>& Journal::complaints() const { return impl_->study.complaints(); }

void Journal::refresh() { impl_->catch_up(); }

std::optional<int> Journal::begin(const Proposal& proposal, std::int64_t started_us, std::size_t expected) {
  std::optional<int> number;
  const auto lines = [&]() -> Impl::Lines {
    if (trials().size() != expected) return {};
    number = static_cast<int>(expected);
    return impl_->begin_lines(proposal, started_us);
  };
  impl_->append(lines, impl_->room_for_ends());
  return number;
}

void Journal::set_where(int trial, const std::string& where) { impl_->set_attribute(trial, kWhere, where); }

void Journal::set_times_lost(int trial, int times) { impl_->set_attribute(trial, kTimesLost, times); }

bool Journal::end(int trial, const trial::Outcome& outcome, double wall_s, std::int64_t ended_us,
                  const std::string& where) {
  bool ended = false;
  impl_->append([&]() -> Impl::Lines {
    if (trial < 0 || static_cast<std::size_t>(trial) >= trials().size()) throw std::logic_error("no such trial to end");
    if (trials()[static_cast<std::size_t>(trial)].outcome) return {};
    ended = true;
    return impl_->end_lines(trial, outcome, wall_s, ended_us, where);
  });
  return ended;
}

namespace {

// Returns the names of studies by id, counted as ReplayedStudy does. Invalid lines are skipped: ReplayedStudy reports
// them.
std::map<int, std::string> studies_in(std::string_view text) {
  std::map<int, std::string> studies;
  int next = 0;
  std::size_t begin = 0;
  for (std::size_t end = text.find('\n'); end != std::string_view::npos; end = text.find('\n', begin)) {
    const Json log = python_json_or_discarded(text.substr(begin, end - begin), OddNumbers::kNull);
    begin = end + 1;
    if (!log.is_object() || !log.contains("op_code")) continue;
    if (log["op_code"] == static_cast<int>(JournalOperation::kDeleteStudy)) studies.erase(log.value("study_id", -1));
    if (log["op_code"] != static_cast<int>(JournalOperation::kCreateStudy)) continue;
    const auto name = log.value("study_name", std::string());
    const bool is_known =
        std::any_of(studies.begin(), studies.end(), [&](const auto& study) { return study.second == name; });
    if (!is_known) studies[next++] = name;
  }
  return studies;
}

}  // namespace

struct JournalReader::Impl {
  std::filesystem::path path;
  ReplayedStudy study;
  FileIdentity identity = {};
  std::size_t applied_bytes = 0;

  explicit Impl(std::filesystem::path file) : path(std::move(file)), study(path.string()) {}

  void begin_anew() {
    study = ReplayedStudy(path.string());
    identity = {};
    applied_bytes = 0;
  }
};

JournalReader::JournalReader(std::filesystem::path file) : impl_(std::make_unique<Impl>(std::move(file))) {}

JournalReader::~JournalReader() = default;

const std::vector<std::string>& JournalReader::complaints() const { return impl_->study.complaints(); }

const std::vector<Trial>& JournalReader::look() {
  const std::optional<ReadOnlyFile> file = ReadOnlyFile::open(impl_->path);
  if (!file) {
    impl_->begin_anew();
    return impl_->study.trials();
  }
  const FileIdentity now = file->identity();
  if (!now.is_file(impl_->identity) || now.bytes < impl_->applied_bytes) impl_->begin_anew();
  impl_->identity = now;
  try {
    // Another process may be writing the last line at this moment, so a torn one is not an error.
    impl_->applied_bytes += impl_->study.apply(file->read_from(impl_->applied_bytes));
  } catch (...) {
    impl_->begin_anew();  // the next call reports the same line again
    throw;
  }
  return impl_->study.trials();
}

std::vector<Trial> read_journal(const std::filesystem::path& file, std::vector<std::string>* complaints) {
  if (!ReadOnlyFile::open(file)) (void)read_text(file);  // throws the reason why it cannot be read
  JournalReader reader(file);
  std::vector<Trial> trials = reader.look();
  if (complaints != nullptr)
    complaints->insert(complaints->end(), reader.complaints().begin(), reader.complaints().end());
  return trials;
}

JournalStudy read_study(const std::filesystem::path& file, const std::string& name) {
  const std::string text = read_text(file, kMostTableBytes);
  const std::map<int, std::string> studies = studies_in(text);
  std::vector<std::string> names;
  for (const auto& [id, other] : studies) names.push_back(other);
  if (names.empty()) throw UserError(file.string() + " has no study", "name a journal of Optuna's");
  if (name.empty() && names.size() > 1) {
    throw UserError(fmt::format("{} has the studies {}", file.string(), join(names, ", ")),
                    fmt::format("name one: {}:{}", file.string(), names.front()));
  }
  for (const auto& [id, other] : studies) {
    if (!name.empty() && other != name) continue;
    ReplayedStudy study(file.string(), id);
    study.apply(text);
    return {other, study.metric(), study.direction() == kMaximize, study.trials()};
  }
  throw UserError(fmt::format("{} has no study '{}'", file.string(), name), suggestion(name, names));
}

}  // namespace krigtune::journal
