#pragma once
#include <cstddef>
#include <memory>
#include <string>

#include "core/json.h"
#include "programs/krigtune/command.h"

namespace krigtune::cli {

class ServedRun;

/// The most bytes that a request may have.
inline constexpr std::size_t kMostRequestBytes = std::size_t{16} << 20;

/// Answers requests of another program, each of which is a line of JSON; docs/serve.md has the protocol.
///
///   Server server(context);
///   server.answer(R"({"id": 1, "method": "open", "params": {"directory": "runs/job"}})");
///   // {"id":1,"result":{...}}
///
/// It has one run directory open at a time. For one thread.
class Server {
 public:
  /// The context must outlive it.
  explicit Server(const Context& context);
  ~Server();

  /// Returns the answer, a line of JSON without its end. It throws nothing: what is wrong is the answer.
  std::string answer(const std::string& request);
  /// Returns the answer to a request that has more than kMostRequestBytes.
  static std::string answer_to_a_long_one();

  /// Returns whether results were told that the result files of the run directory do not contain. They are in its
  /// journal.
  bool has_unwritten() const;
  /// Brings these files up to date, if they can be written; otherwise it prints a warning. `at_end`: with the
  /// recommendation of all trials.
  void write_files(bool at_end);

 private:
  Json result_of(const std::string& method, JsonObject params);
  Json open(JsonObject params);
  Json plan(JsonObject params);
  ServedRun& run();

  const Context& context_;
  std::unique_ptr<ServedRun> run_;  ///< nullptr: none is open
};

/// Reads requests from a file, a line each, without ever holding more than one of them and what came with it.
class RequestReader {
 public:
  enum class Event { kLine, kTooLong, kNothingYet, kEnd };

  /// `file`: a descriptor that is open for reading; it stays open.
  explicit RequestReader(int file, std::size_t most_bytes = kMostRequestBytes) : file_(file), most_bytes_(most_bytes) {}

  /// Waits for the next line at most `wait_ms` milliseconds; -1: as long as it takes. A line that is too long is read
  /// to its end and dropped. A last line without an end counts.
  Event next(int wait_ms);
  /// Returns the line of the last event, without its end.
  const std::string& line() const { return line_; }

 private:
  bool take_line();
  bool read_more();

  int file_;
  std::size_t most_bytes_;
  std::string buffer_;
  std::size_t searched_ = 0;  ///< of the buffer, without an end of line
  bool skips_ = false;        ///< the line at the buffer's beginning is too long
  bool ended_ = false;
  std::string line_;
};

}  // namespace krigtune::cli
