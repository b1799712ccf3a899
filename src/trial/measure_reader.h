#pragma once
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "trial/job_log.h"
#include "trial/measurement.h"

namespace krigtune::trial {

/// Where a job's output goes.
struct JobOutputs {
  std::filesystem::path standard_output;
  std::filesystem::path standard_error;
  std::filesystem::path working_directory;  ///< what paths of the spec are relative to
};

/// Reads a running job's output and files, only what is new each time, and measures.
///
///   MeasureReader reader(spec, facts, outputs);     // before the job starts: what is in its files now is old
///   process.enough = [&] { return reader.look() && is_enough(reader.measurement()); };
///   run_process(process, clock);
///   reader.finish();
class MeasureReader {
 public:
  /// Placeholders of the spec are filled in. stdout and stderr are read from their beginning.
  MeasureReader(MeasureSpec spec, MeasureFacts facts, JobOutputs outputs);
  ~MeasureReader();
  MeasureReader(const MeasureReader&) = delete;
  MeasureReader& operator=(const MeasureReader&) = delete;

  /// True: something was read. Called some twenty times a second, so it reads 32 MiB of a file at most.
  bool look();
  /// All that is left, the last lines too: once the job has ended.
  void finish();

  const Measurement& measurement() const { return measurement_; }
  /// Bytes so far: a sign of life.
  std::int64_t bytes_read() const { return bytes_read_; }

 private:
  class Stream;
  struct Source;

  void find_files();
  void open(const Source& source, const std::filesystem::path& file, bool is_old);
  bool read(std::size_t most_bytes);

  Measurement measurement_;
  JobOutputs outputs_;
  std::vector<Source> sources_;
  std::map<std::filesystem::path, std::unique_ptr<Stream>> streams_;
  std::int64_t bytes_read_ = 0;
  std::int64_t looks_ = 0;
};

/// Which metrics of the spec may be in a file: those that are read from `from`; "stdout" and "stderr" take what is read
/// from "output".
std::vector<std::size_t> metrics_from(const MeasureSpec& spec, const std::string& from);

/// A whole file at once, as if all metrics came from it. `visit` sees each line with what was found in it.
void measure_file(Measurement& measurement, const std::filesystem::path& file,
                  const std::function<void(const std::string& line, const std::vector<LineMatch>& found)>& visit);

}  // namespace krigtune::trial
