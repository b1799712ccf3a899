#include "failure_text.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <string_view>
#include <vector>

#include "krigtune/core/text.h"
#include "trial_files.h"

namespace krigtune {
namespace {

std::optional<int> number_at(std::string_view text) {
  text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
  int number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && number >= 0 ? std::optional(number) : std::nullopt;
}

std::optional<int> integer_after(std::string_view line, std::string_view words) {
  const std::size_t at = line.find(words);
  return at == std::string_view::npos ? std::nullopt : number_at(line.substr(at + words.size()));
}

std::optional<RankLabel> label_between(std::string_view line, std::string_view open, std::string_view close) {
  if (line.substr(0, open.size()) != open) return std::nullopt;
  const std::size_t end = line.find(close, open.size());
  const std::optional<int> rank = number_at(line.substr(open.size()));
  constexpr std::size_t kLongest = 24;
  if (end > kLongest || !rank) return std::nullopt;
  return RankLabel{*rank, end + close.size()};
}

std::size_t utf8_length(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const std::size_t length = byte(0) < 0x80             ? 1
                             : (byte(0) & 0xE0) == 0xC0 ? 2
                             : (byte(0) & 0xF0) == 0xE0 ? 3
                             : (byte(0) & 0xF8) == 0xF0 ? 4
                                                        : 0;
  if (length == 0 || length > text.size()) return 0;
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return 0;
  }
  return length;
}

}  // namespace

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    lines.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return lines;
}

std::optional<RankLabel> rank_label(std::string_view line) {
  // torchrun --tee or log prefixes: "[rank3]:", "[default3]:"
  for (const std::string_view open : {"[rank", "[default"}) {
    if (const auto label = label_between(line, open, "]:")) return label;
  }
  // mpirun --tag-output: "[1,3]<stderr>:"
  for (const std::string_view stream : {"]<stderr>:", "]<stdout>:"}) {
    const std::size_t end = line.find(stream);
    const std::size_t comma = line.substr(0, end).rfind(',');
    if (line.substr(0, 1) != "[" || end == std::string_view::npos || comma == std::string_view::npos) continue;
    if (const auto rank = number_at(line.substr(comma + 1))) return RankLabel{*rank, end + stream.size()};
  }
  // srun --label: "3: "
  const std::size_t colon = line.find(": ");
  const std::size_t blanks = std::min(line.find_first_not_of(' '), line.size());
  const bool digits = colon != std::string_view::npos && colon > blanks &&
                      line.substr(blanks, colon - blanks).find_first_not_of("0123456789") == std::string_view::npos;
  const std::optional<int> rank = digits ? number_at(line) : std::nullopt;
  return rank ? std::optional(RankLabel{*rank, colon + 2}) : std::nullopt;
}

std::string printable(const std::string& line) {
  std::string text = line;
  while (!text.empty() && text.back() == '\r') text.pop_back();
  text.erase(0, text.rfind('\r') + 1);
  std::string clean;
  for (std::size_t i = 0; i < text.size();) {
    if (text[i] == '\x1b' && i + 1 < text.size() && text[i + 1] == '[') {  // a colour: ESC [ ... letter
      i = std::min(text.find_first_of("ABCDEFGHJKSTfhlmnsu", i + 2), text.size() - 1) + 1;
      continue;
    }
    const std::size_t length = utf8_length(std::string_view(text).substr(i));
    const bool control = length == 1 && static_cast<unsigned char>(text[i]) < 0x20 && text[i] != '\t';
    if (!control) clean += length == 0 ? "?" : text.substr(i, length);
    i += std::max<std::size_t>(length, 1);
  }
  return clean;
}

namespace {

// The launcher's words about a failure, or the trace of its own end.
bool is_of_the_launcher(const std::string& line) {
  constexpr std::array kMarks = {"torch.distributed.elastic", "torch/distributed/elastic", "torch/distributed/run.py",
                                 "torch/distributed/launcher", "bin/torchrun"};
  return std::any_of(kMarks.begin(), kMarks.end(),
                     [&](const char* mark) { return line.find(mark) != std::string::npos; });
}

// Up to where torchrun begins to tell that a worker has failed; all lines where it does not.
std::vector<std::string> before_the_report(std::vector<std::string> lines) {
  const auto begin = std::find_if(lines.begin(), lines.end(), [](const std::string& line) {
    return is_of_the_launcher(line) &&
           (line.find("failed (exitcode") != std::string::npos || line.find("Sending process") != std::string::npos ||
            line.find("ChildFailedError") != std::string::npos);
  });
  const bool anything = std::any_of(lines.begin(), begin, [](const std::string& line) {
    return line.find_first_not_of(" \r\t") != std::string::npos;
  });
  if (anything) lines.erase(begin, lines.end());
  return lines;
}

std::vector<std::string> lines_of_rank(const std::vector<std::string>& lines, int rank) {
  std::vector<std::string> picked;
  for (const std::string& line : lines) {
    const std::optional<RankLabel> label = rank_label(line);
    if (label && label->rank == rank) picked.push_back(line.substr(label->length));
  }
  return picked;
}

// Without a launcher's report: the first labelled rank that raises something.
std::optional<int> first_raising_rank(const std::vector<std::string>& lines) {
  constexpr std::array kMarks = {"Traceback (most recent call last)", "Error: ", "terminate called", "Assertion"};
  for (const std::string& line : lines) {
    const std::optional<RankLabel> label = rank_label(line);
    const auto holds = [&](const char* mark) { return line.find(mark, label->length) != std::string::npos; };
    if (label && std::any_of(kMarks.begin(), kMarks.end(), holds)) return label->rank;
  }
  return std::nullopt;
}

std::string ending_of(const std::vector<std::string>& lines) {
  std::vector<std::string> clean;
  constexpr std::size_t kEnough = 200;  // last_lines takes the last 20 of them
  const std::size_t skip = lines.size() > kEnough ? lines.size() - kEnough : 0;
  for (std::size_t i = skip; i < lines.size(); ++i) clean.push_back(printable(lines[i]));
  const std::string text = join(clean, "\n");
  return text.find_first_not_of(" \t\n") == std::string::npos ? "" : last_lines(text);
}

}  // namespace

std::optional<int> first_failing_rank(const std::string& text) {
  std::optional<int> rank;
  bool root_cause = false;
  for (const std::string& line : lines_of(text)) {
    if (line.find("Root Cause (first observed failure)") != std::string::npos) root_cause = true;
    const bool names_rank = line.find("  rank ") != std::string::npos && line.find("(local_rank") != std::string::npos;
    if (root_cause && names_rank) return integer_after(line, ": ");
    if (rank) continue;
    // Open MPI: "mpirun noticed that process rank 3 with PID 0 on node n1 exited on signal 9 (Killed)."
    if (line.find("noticed that process rank") != std::string::npos) rank = integer_after(line, "process rank");
    // Slurm: "srun: error: n1: task 3: Exited with exit code 1"
    if (line.find("srun: error:") != std::string::npos) rank = integer_after(line, ": task ");
  }
  return rank;
}

std::string failure_text(const std::string& standard_output, const std::string& standard_error) {
  const std::vector<std::string> err = lines_of(standard_error);
  const std::vector<std::string> out = lines_of(standard_output);
  std::optional<int> rank = first_failing_rank(standard_error);
  if (!rank) rank = first_failing_rank(standard_output);
  if (!rank) rank = first_raising_rank(err);
  if (!rank) rank = first_raising_rank(out);
  if (rank) {
    for (const std::vector<std::string>* lines : {&err, &out}) {
      const std::string text = ending_of(lines_of_rank(*lines, *rank));
      if (!text.empty()) return "rank " + std::to_string(*rank) + ":\n" + text;
    }
  }
  const std::string text = ending_of(before_the_report(err));
  return text.empty() ? ending_of(out) : text;
}

}  // namespace krigtune
