#include "trial/measure_reader.h"

#include <algorithm>
#include <fstream>
#include <limits>

#include "core/error.h"
#include "trial/trial_files.h"

namespace krigtune::trial {
namespace {

constexpr std::size_t kMostOfALook = std::size_t{32} << 20;
constexpr std::int64_t kLooksBetweenSearches = 20;  // for patterns of files: about one second

bool has(const MeasureSpec& spec, const std::vector<std::size_t>& metrics, MeasureHow how) {
  return std::any_of(metrics.begin(), metrics.end(),
                     [&](std::size_t metric) { return spec.metrics[metric].how == how; });
}

bool is_text(const MeasureSpec& spec, const std::vector<std::size_t>& metrics) {
  return !has(spec, metrics, MeasureHow::kKey) && !has(spec, metrics, MeasureHow::kColumn);
}

std::string first_line_of(const std::filesystem::path& file) {
  std::string first;
  LineSplitter splitter(kMostRecordBytes);
  const auto keep = [&](const std::string& line) {
    if (first.empty()) first = line;
  };
  splitter.add(read_head(file, kMostRecordBytes), keep);
  splitter.finish(keep);
  return first;
}

}  // namespace

// The files of one value of `from`.
struct MeasureReader::Source {
  std::string from;
  std::filesystem::path path;  // absolute, may contain '*'
  std::vector<std::size_t> metrics;
  bool checks = false;
};

// A single file.
class MeasureReader::Stream {
 public:
  Stream(int number, const Source& source, GrowingFile file, const MeasureSpec& spec)
      : number_(number),
        metrics_(source.metrics),
        checks_(source.checks),
        is_events_(has(spec, source.metrics, MeasureHow::kTag)),
        is_table_(has(spec, source.metrics, MeasureHow::kColumn)),
        most_line_(is_text(spec, source.metrics) ? kMostLineBytes : kMostRecordBytes),
        file_(std::move(file)),
        splitter_(most_line_),
        waits_for_header_(is_table_) {}

  /// Takes the header of a table that existed before the job.
  void take_header(Measurement& measurement) {
    if (!is_table_ || file_.position() == 0) return;
    measurement.take_csv_header(number_, first_line_of(file_.path()));
    waits_for_header_ = false;
  }

  std::uint64_t position() const { return file_.position(); }

  std::int64_t read(Measurement& measurement, std::size_t most_bytes) {
    const GrowingFile::Change change = file_.look();
    if (change == GrowingFile::Change::kNone) return 0;
    if (change == GrowingFile::Change::kReplaced) begin_anew(measurement);
    std::size_t taken = 0;
    while (taken < most_bytes) {
      const std::string_view piece = file_.next();
      if (piece.empty()) break;
      taken += piece.size();
      take(piece, measurement);
    }
    measurement.end_of_look(number_, file_.written_s());
    return static_cast<std::int64_t>(taken);
  }

  void finish(Measurement& measurement) {
    splitter_.finish([&](const std::string& line) { take_line(line, measurement); });
    measurement.end_of_look(number_, file_.written_s());
  }

 private:
  void begin_anew(Measurement& measurement) {
    measurement.forget(number_);
    splitter_ = LineSplitter(most_line_);
    events_ = {};
    waits_for_header_ = is_table_;
  }

  void take(std::string_view piece, Measurement& measurement) {
    if (is_events_) {
      events_.add(piece, [&](const EventScalar& event) { measurement.take_event(number_, event, metrics_); });
    } else {
      splitter_.add(piece, [&](const std::string& line) { take_line(line, measurement); });
    }
  }

  void take_line(const std::string& line, Measurement& measurement) {
    if (waits_for_header_) {
      measurement.take_csv_header(number_, line);
      waits_for_header_ = false;
    } else {
      measurement.take_line(number_, line, metrics_, checks_);
    }
  }

  int number_;
  std::vector<std::size_t> metrics_;
  bool checks_;
  bool is_events_;
  bool is_table_;
  std::size_t most_line_;
  GrowingFile file_;
  LineSplitter splitter_;
  EventReader events_;
  bool waits_for_header_;
};

MeasureReader::MeasureReader(MeasureSpec spec, MeasureFacts facts, JobOutputs outputs)
    : measurement_(std::move(spec), facts), outputs_(std::move(outputs)) {
  const MeasureSpec& read = measurement_.spec();
  const bool checks = !read.checks.empty();
  sources_.push_back({"stdout", outputs_.standard_output, metrics_from(read, "stdout"), checks});
  sources_.push_back({"stderr", outputs_.standard_error, metrics_from(read, "stderr"), checks});
  for (const Measure& measure : read.metrics) {
    const auto is_same = [&](const Source& source) { return source.from == measure.from; };
    if (!is_path(measure.from) || std::any_of(sources_.begin(), sources_.end(), is_same)) continue;
    const auto path = std::filesystem::absolute(outputs_.working_directory / measure.from).lexically_normal();
    sources_.push_back({measure.from, path, metrics_from(read, measure.from), false});
  }
  std::erase_if(sources_, [](const Source& source) { return source.metrics.empty() && !source.checks; });
  for (const Source& source : sources_) {
    const bool is_output = !is_path(source.from);
    for (const auto& file : is_output ? std::vector{source.path} : files_of_pattern(source.path)) {
      open(source, file, !is_output);
    }
  }
}

MeasureReader::~MeasureReader() = default;

void MeasureReader::open(const Source& source, const std::filesystem::path& file, bool is_old) {
  std::unique_ptr<Stream>& stream = streams_[file];
  if (stream != nullptr) return;
  stream =
      std::make_unique<Stream>(static_cast<int>(streams_.size()) - 1, source,
                               is_old ? GrowingFile::behind_its_end(file) : GrowingFile(file), measurement_.spec());
  stream->take_header(measurement_);
}

void MeasureReader::find_files() {
  for (const Source& source : sources_) {
    if (!is_path(source.from)) continue;
    for (const std::filesystem::path& file : files_of_pattern(source.path)) open(source, file, false);
  }
}

bool MeasureReader::read(std::size_t most_bytes) {
  std::int64_t taken = 0;
  for (const auto& [file, stream] : streams_) taken += stream->read(measurement_, most_bytes);
  bytes_read_ += taken;
  return taken > 0;
}

std::uint64_t MeasureReader::read_up_to(const std::filesystem::path& output) const {
  const auto stream = streams_.find(output);
  return stream == streams_.end() ? std::numeric_limits<std::uint64_t>::max() : stream->second->position();
}

bool MeasureReader::look() {
  if (looks_++ % kLooksBetweenSearches == 0) find_files();
  return read(kMostOfALook);
}

void MeasureReader::finish() {
  find_files();
  while (read(kMostOfALook)) {
  }
  for (const auto& [file, stream] : streams_) stream->finish(measurement_);
}

std::vector<std::size_t> metrics_from(const MeasureSpec& spec, const std::string& from) {
  std::vector<std::size_t> metrics;
  for (std::size_t i = 0; i < spec.metrics.size(); ++i) {
    const std::string& own = spec.metrics[i].from;
    if (own == from || (own == "output" && !is_path(from))) metrics.push_back(i);
  }
  return metrics;
}

void measure_file(Measurement& measurement, const std::filesystem::path& file,
                  const std::function<void(const std::string& line, const std::vector<LineMatch>& found)>& visit) {
  const MeasureSpec& spec = measurement.spec();
  std::vector<std::size_t> all;
  for (std::size_t i = 0; i < spec.metrics.size(); ++i) all.push_back(i);
  GrowingFile growing(file);
  if (growing.look() == GrowingFile::Change::kNone) return;
  if (file.filename().string().find("tfevents") != std::string::npos) {
    EventReader events;
    for (std::string_view piece = growing.next(); !piece.empty(); piece = growing.next()) {
      events.add(piece, [&](const EventScalar& event) { measurement.take_event(0, event, all); });
    }
    return;
  }
  if (has(spec, all, MeasureHow::kColumn)) measurement.take_csv_header(0, first_line_of(file));
  LineSplitter splitter(is_text(spec, all) ? kMostLineBytes : kMostRecordBytes);
  const auto take = [&](const std::string& line) { visit(line, measurement.take_line(0, line, all, true)); };
  for (std::string_view piece = growing.next(); !piece.empty(); piece = growing.next()) splitter.add(piece, take);
  splitter.finish(take);
}

}  // namespace krigtune::trial
