#include "programs/krigtune/measure_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

namespace krigtune::cli {
namespace {

enum class Mark { kNone, kMatch, kValue };

// A character (which may have several bytes of UTF-8) and what it belongs to.
struct Marked {
  std::string text;
  Mark mark = Mark::kNone;
};

bool goes_on(char byte) { return (static_cast<unsigned char>(byte) & 0xC0U) == 0x80U; }
bool is_inside(std::size_t at, std::size_t begin, std::size_t length) { return at >= begin && at < begin + length; }

std::vector<Marked> characters_of(const ShownMatch& match) {
  std::vector<Marked> characters;
  for (std::size_t at = 0; at < match.line.size(); ++at) {
    const char c = match.line[at];
    if (goes_on(c) && !characters.empty()) {
      characters.back().text += c;
      continue;
    }
    const bool in_value = is_inside(at, match.found.value_begin, match.found.value.size());
    const bool in_match = is_inside(at, match.found.begin, match.found.length);
    const bool is_control = static_cast<unsigned char>(c) < 0x20;
    characters.push_back({is_control ? " " : std::string(1, c), in_value   ? Mark::kValue
                                                                : in_match ? Mark::kMatch
                                                                           : Mark::kNone});
  }
  return characters;
}

// Returns the part of the line to show: the number, its match if it fits, and some of the surroundings.
std::pair<std::size_t, std::size_t> window_of(const std::vector<Marked>& characters, std::size_t room) {
  if (characters.size() <= room) return {0, characters.size()};
  const auto is_marked = [](const Marked& c) { return c.mark != Mark::kNone; };
  const auto is_value = [](const Marked& c) { return c.mark == Mark::kValue; };
  const auto first =
      static_cast<std::size_t>(std::find_if(characters.begin(), characters.end(), is_marked) - characters.begin());
  const auto behind =
      characters.size() -
      static_cast<std::size_t>(std::find_if(characters.rbegin(), characters.rend(), is_value) - characters.rbegin());
  const std::size_t before = std::min<std::size_t>(first, 8);
  std::size_t begin = first - before;
  if (behind > begin + room) begin = behind - room;  // for a long match show its end, which has the number
  begin = std::min(begin, characters.size() - room);
  return {begin, begin + room};
}

std::string coloured(const Marked& character, Mark& now) {
  std::string text;
  if (character.mark != now) {
    now = character.mark;
    text = now == Mark::kNone ? "\x1b[0m" : now == Mark::kMatch ? "\x1b[0;4m" : "\x1b[0;1;4;32m";
  }
  return text + character.text;
}

}  // namespace

std::string match_text(const ShownMatch& match, int width, bool colors) {
  constexpr std::size_t kNumberWidth = 6, kDots = 3, kLeastRoom = 30;
  const std::size_t margin = kNumberWidth + 2 + kDots;
  const auto columns = static_cast<std::size_t>(std::max(width, 0));
  const std::size_t room = std::max(columns > margin + kDots ? columns - margin - kDots : 0, kLeastRoom);
  const std::vector<Marked> characters = characters_of(match);
  const auto [begin, end] = window_of(characters, room);
  const bool is_cut = begin > 0;
  std::string line = fmt::format("{:>{}}  {}", match.number, kNumberWidth, is_cut ? "..." : "");
  std::string marks(line.size(), ' ');
  Mark now = Mark::kNone;
  for (std::size_t at = begin; at < end; ++at) {
    line += colors ? coloured(characters[at], now) : characters[at].text;
    marks += characters[at].mark == Mark::kValue ? '^' : characters[at].mark == Mark::kMatch ? '~' : ' ';
  }
  if (now != Mark::kNone) line += "\x1b[0m";
  if (end < characters.size()) line += "...";
  marks.erase(marks.find_last_not_of(' ') + 1);
  return fmt::format("{}\n{}  {}: {}\n", line, marks, match.name, match.means);
}

}  // namespace krigtune::cli
