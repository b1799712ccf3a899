// Finds Python traces in the output of a job whose ranks write at the same time.
#include "trial/python_exception.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <map>
#include <set>
#include <string_view>
#include <utility>

#include "core/text.h"
#include "trial/failure_text.h"

namespace krigtune::trial {
namespace {

constexpr std::string_view kTrace = "Traceback (most recent call last)";
constexpr std::size_t kMostFollowing = 4;

// rich draws a box around a trace:
//   +--- Traceback (most recent call last) ---+
//   | /w/train.py:331 in <module>             |
//   | > 331 |   main()                        |
//   +-----------------------------------------+
//   ValueError: the message, which is broken at the terminal's width
constexpr std::string_view kBoxBegins = "\u256d", kBoxSide = "\u2502", kBoxHere = "\u2771", kBoxEnds = "\u2570";

struct Line {
  std::string text;
  std::size_t number;
};

// pdsh prefixes each line with "worker-0: ", so the prefix of a trace's first line is a host.
std::set<std::string> hosts_in(const std::vector<std::string>& lines) {
  std::set<std::string> hosts;
  for (const std::string& line : lines) {
    const std::size_t trace = line.find(kTrace);
    const std::size_t colon = line.find(": ");
    if (trace == std::string::npos || colon == std::string::npos || colon >= trace || rank_label(line)) continue;
    if (line.find_first_of(" [") >= colon) hosts.insert(line.substr(0, colon + 2));
  }
  return hosts;
}

using RankSource = std::pair<std::string, int>;  // host and rank; "" and -1: unknown

// Returns the lines of each source in order, without their labels.
std::map<RankSource, std::vector<Line>> by_source(const std::string& text) {
  const std::vector<std::string> lines = lines_of(text);
  const std::set<std::string> hosts = hosts_in(lines);
  std::map<RankSource, std::vector<Line>> sources;
  for (std::size_t number = 0; number < lines.size(); ++number) {
    std::string line = lines[number];
    const auto host =
        std::find_if(hosts.begin(), hosts.end(), [&](const auto& one) { return line.rfind(one, 0) == 0; });
    if (host != hosts.end()) line.erase(0, host->size());
    const std::optional<RankLabel> label = rank_label(line);
    if (label) line.erase(0, label->length);
    if (label && !line.empty() && line.front() == ' ') line.erase(0, 1);  // "[rank1]: Traceback"
    const RankSource source(host == hosts.end() ? "" : *host, label ? label->rank : -1);
    sources[source].push_back({printable(line), number});
  }
  return sources;
}

bool is_raised_from(const std::string& line) { return line.rfind("The above exception was the direct cause", 0) == 0; }

bool is_chained(const std::string& line) {
  return line.rfind("During handling of the above exception", 0) == 0 || is_raised_from(line);
}

// Parses "torch.OutOfMemoryError: CUDA out of memory." or "KeyboardInterrupt"; returns false for another process's
// line.
bool set_type(const std::string& line, PythonException& exception) {
  const std::size_t colon = line.find(": ");
  std::string type = line.substr(0, colon);
  while (!type.empty() && (type.back() == ':' || type.back() == ' ')) type.pop_back();
  if (type.empty() || type.find_first_of(" []()/=") != std::string::npos) return false;
  exception.type = type.substr(type.rfind('.') + 1);
  exception.message = colon == std::string::npos ? "" : line.substr(colon + 2);
  return true;
}

bool ends_message(const std::string& line) {
  constexpr std::array<std::string_view, 6> kBegins = {"Traceback", "During handling", "The above exception", "[20",
                                                       "====",      kBoxBegins};
  return line.find_first_not_of(' ') == std::string::npos ||
         std::any_of(kBegins.begin(), kBegins.end(), [&](auto begin) { return line.rfind(begin, 0) == 0; });
}

std::string file_of(const std::string& frame) {
  constexpr std::string_view kFile = "File \"";
  const std::size_t begin = frame.find(kFile);
  const std::size_t end = begin == std::string::npos ? begin : frame.find('"', begin + kFile.size());
  return end == std::string::npos ? "" : frame.substr(begin + kFile.size(), end - begin - kFile.size());
}

struct Found {
  PythonException exception;
  std::size_t number;  ///< the line where its trace begins
};

bool begins_with(const std::string& line, std::string_view begin) { return line.rfind(begin, 0) == 0; }

bool begins_box(const std::string& line) {
  return begins_with(line, kBoxBegins) && line.find(kTrace) != std::string::npos;
}

// Reads the frames of a plain trace whose first line is lines[at]. Moves `at` to the line behind them.
void read_frames(const std::vector<Line>& lines, std::size_t& at, PythonException& exception) {
  for (++at; at < lines.size(); ++at) {
    const std::string& line = lines[at].text;
    if (!line.empty() && line.front() != ' ') break;
    const std::string file = file_of(line);
    const bool marks_only = line.find_first_not_of(" ^~") == std::string::npos;  // under the code since Python 3.11
    if (!file.empty()) exception.files.push_back(file);
    if (file.empty() && !marks_only) exception.code = trimmed(line);
  }
}

// The same for a box of rich.
void read_box(const std::vector<Line>& lines, std::size_t& at, PythonException& exception) {
  for (++at; at < lines.size() && begins_with(lines[at].text, kBoxSide); ++at) {
    std::string inside = trimmed(std::string_view(lines[at].text).substr(kBoxSide.size()));
    const std::size_t right = inside.rfind(kBoxSide);
    if (right != std::string::npos && right + kBoxSide.size() == inside.size())
      inside = trimmed(inside.substr(0, right));
    const std::size_t source = inside.find(".py:");
    if (!inside.empty() && inside.front() == '/' && source != std::string::npos)
      exception.files.push_back(inside.substr(0, source + 3));
    const std::size_t code = inside.find(kBoxSide);
    if (begins_with(inside, kBoxHere) && code != std::string::npos)
      exception.code = trimmed(std::string_view(inside).substr(code + kBoxSide.size()));
  }
  if (at < lines.size() && begins_with(lines[at].text, kBoxEnds)) ++at;
}

// Reads the trace whose first line is lines[at] and moves `at` behind it. Returns false if the trace is incomplete.
bool read_trace(const std::vector<Line>& lines, std::size_t& at, PythonException& exception) {
  const bool boxed = begins_box(lines[at].text);
  if (boxed) {
    read_box(lines, at, exception);
  } else {
    read_frames(lines, at, exception);
  }
  if (at == lines.size() || !set_type(lines[at].text, exception)) return false;
  for (++at; at < lines.size() && !ends_message(lines[at].text); ++at) {
    if (exception.more.size() < kMostFollowing) exception.more.push_back(lines[at].text);
  }
  if (boxed) {
    for (const std::string& rest : exception.more) exception.message = trimmed(exception.message) + " " + trimmed(rest);
    exception.more.clear();
  }
  return true;
}

void read_exceptions(int rank, const std::vector<Line>& lines, std::vector<Found>& found) {
  bool chained = false;
  bool is_from = false;
  const std::size_t before = found.size();
  for (std::size_t at = 0; at < lines.size();) {
    if (is_chained(lines[at].text)) {
      chained = true;
      is_from = is_raised_from(lines[at].text);
    }
    if (!begins_with(lines[at].text, kTrace) && !begins_box(lines[at].text)) {
      ++at;
      continue;
    }
    Found next{{}, lines[at].number};
    if (rank >= 0) next.exception.rank = rank;
    if (!read_trace(lines, at, next.exception)) continue;
    const bool same = chained && found.size() > before;
    chained = false;
    if (same) {
      next.number = found.back().number;
      if (is_from) next.exception.origin = found.back().exception.line();
      found.pop_back();
    }
    found.push_back(std::move(next));
  }
}

}  // namespace

bool is_consequence(const PythonException& exception) {
  constexpr std::array<std::string_view, 7> kTypes = {
      "ChildFailedError", "SignalException", "KeyboardInterrupt", "CalledProcessError",
      "SystemExit",       "BrokenPipeError", "EOFError"};
  constexpr std::array<std::string_view, 7> kWords = {
      "Connection reset by peer", "Connection closed by peer", "Broken pipe",
      "ncclRemoteError",          "remote process exited",     "Socket Timeout",
      "connection was reset"};
  return std::find(kTypes.begin(), kTypes.end(), exception.type) != kTypes.end() ||
         std::any_of(kWords.begin(), kWords.end(),
                     [&](auto words) { return exception.message.find(words) != std::string::npos; });
}

std::optional<PythonException> cause_of_failure(const std::string& text) {
  std::vector<Found> found;
  for (const auto& [source, lines] : by_source(text)) read_exceptions(source.second, lines, found);
  if (found.empty()) return std::nullopt;
  std::stable_sort(found.begin(), found.end(), [](const Found& a, const Found& b) { return a.number < b.number; });
  const auto cause = [&](const auto& holds) {
    return std::find_if(found.begin(), found.end(),
                        [&](const Found& one) { return !is_consequence(one.exception) && holds(one.exception); });
  };
  const std::optional<int> first = first_failing_rank(text);
  auto chosen = cause([&](const PythonException& one) { return first && one.rank == first; });
  if (chosen == found.end()) chosen = cause([](const PythonException& /*one*/) { return true; });
  return chosen == found.end() ? found.front().exception : chosen->exception;
}

}  // namespace krigtune::trial
