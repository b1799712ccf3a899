#include <vector>

#include "deepspeed/job/ds_command.h"
#include "fuzz/fuzz.h"
#include "jobs/command/command.h"

// The input is a user's command, with one word on each line.
KRIGTUNE_FUZZ(command_line) {
  std::vector<std::string> words;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    words.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  if (words.empty()) return;
  static_cast<void>(krigtune::jobs::variables_of(krigtune::jobs::read_command(words)));
  static_cast<void>(krigtune::deepspeed::read_ds_command(words));
}
