#include "programs/krigtune/log.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <ostream>
#include <string_view>

#include "core/columns.h"
#include "core/error.h"
#include "core/short_program.h"
#include "programs/krigtune/command_line.h"

namespace krigtune::cli {
namespace {

constexpr const char* kClearLine = "\r\033[K";

}  // namespace

Log::Log(const Console& console, Verbosity verbosity, const std::optional<std::filesystem::path>& file,
         const std::string& named)
    : console_(console), verbosity_(verbosity) {
  if (!file) return;
  file_.open(*file, std::ios::app);
  if (!file_) throw UserError(fmt::format("{}: cannot write '{}'", named, file->string()), "choose another file");
}

Log::~Log() { end_status(); }

void Log::error(const std::string& text) { say("krigtune: " + text, true); }

void Log::warning(const std::string& text) { say("krigtune: warning: " + text, true); }

void Log::progress(const std::string& text) { say(text, verbosity_ != Verbosity::kQuiet); }

void Log::detail(const std::string& text) { say(text, verbosity_ == Verbosity::kVerbose); }

int Log::width() const {
  constexpr int kNarrowest = 20;
  return std::max(console_.terminal_size != nullptr ? console_.terminal_size().width : console_.width, kNarrowest);
}

bool Log::is_live() const { return console_.err_is_terminal && verbosity_ != Verbosity::kQuiet; }

// Names, values and the output of programs may contain anything; make sure that nothing of it moves the cursor.
void Log::say(const std::string& said, bool shown) {
  const std::string text = visible_lines(said);
  const std::lock_guard lock(mutex_);
  if (shown) {
    if (!status_.empty()) console_.err << kClearLine;
    status_.clear();
    console_.err << text << '\n' << std::flush;
  }
  if (file_.is_open()) file_ << local_iso_time(console_.clock.unix_us()) << ' ' << text << '\n' << std::flush;
}

void Log::status(const std::string& text) {
  const std::lock_guard lock(mutex_);
  const std::string line = clipped(text, width() - 1);
  if (!is_live() || line == status_) return;
  console_.err << kClearLine << line << std::flush;
  status_ = line;
}

void Log::end_status() {
  const std::lock_guard lock(mutex_);
  if (!status_.empty()) console_.err << kClearLine << std::flush;
  status_.clear();
}

// The connections of this process with the outside are read only here.
namespace {

// If nothing is a terminal, whoever starts krigtune may set the line width in COLUMNS, as for other programs.
TerminalSize size_of_variables() {
  constexpr int kWidest = 10'000;
  const char* columns = std::getenv("COLUMNS");
  const int width = columns == nullptr ? 0 : std::atoi(columns);
  TerminalSize size;
  if (width > 0) size.width = std::min(width, kWidest);
  return size;
}

TerminalSize terminal_size() {
  for (const int file : {STDERR_FILENO, STDOUT_FILENO}) {
    winsize size{};
    if (::ioctl(file, TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
      return {size.ws_col, size.ws_row > 0 ? size.ws_row : 24};
  }
  return size_of_variables();
}

// https://no-color.org
bool colors_are_welcome() {
  const char* no_color = std::getenv("NO_COLOR");
  const char* terminal = std::getenv("TERM");
  return (no_color == nullptr || *no_color == '\0') && (terminal == nullptr || std::string(terminal) != "dumb");
}

Environment own_variables() {
  Environment variables;
  for (char** entry = ::environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view text(*entry);
    const std::size_t sign = text.find('=');
    if (text.rfind("KRIGTUNE_", 0) == 0 && sign != std::string_view::npos) {
      variables.emplace(text.substr(0, sign), text.substr(sign + 1));
    }
  }
  return variables;
}

}  // namespace

Console process_console(const Clock& clock, const std::string& typed_as) {
  Console console{std::cout, std::cerr, clock, own_program()};
  console.typed_as = typed_as;
  console.out_is_terminal = ::isatty(STDOUT_FILENO) == 1;
  console.err_is_terminal = ::isatty(STDERR_FILENO) == 1;
  console.colors = colors_are_welcome();
  console.width = terminal_size().width;
  console.terminal_size = &terminal_size;
  console.environment = own_variables();
  return console;
}

}  // namespace krigtune::cli
