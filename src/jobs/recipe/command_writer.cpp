#include "jobs/recipe/command_writer.h"

#include <algorithm>

#include "core/text.h"

namespace krigtune::jobs {
namespace {

using Texts = std::vector<std::string>;

std::string name_of_flag(const std::string& word) {
  std::string name = word.substr(0, word.find('='));
  const std::size_t first = std::min(name.find_first_not_of('-'), name.size());
  std::replace(name.begin() + static_cast<std::ptrdiff_t>(first), name.end(), '-', '_');
  return name;
}

std::string with_value(const std::string& word, bool is_joined, const std::string& value) {
  return is_joined ? word.substr(0, word.find('=') + 1) + value : value;
}

}  // namespace

std::string with_escaped_braces(const std::string& text) {
  std::string escaped;
  for (const char c : text) escaped.append(c == '{' || c == '}' ? 2 : 1, c);
  return escaped;
}

CommandWriter::CommandWriter(const Recipe& recipe, const RecipeJob& job, bool with_placeholders)
    : words_(job.command.argv),
      override_prefix_(recipe.override_prefix),
      launcher_(region_of(job.command, true)),
      insertion_(launcher_insertion(job.command)),
      script_(region_of(job.command, false).begin) {
  for (std::size_t i = 0; i < words_.size(); ++i) original_.push_back(i);
  if (with_placeholders) {
    for (std::string& word : words_) word = with_escaped_braces(word);
  }
  for (const RecipeValue& value : recipe.parameters) {
    const Place* place = place_of(value, job);
    if (place == nullptr || place->tail.empty()) continue;
    for (std::size_t i = words_.size(); i-- > script_;) {
      if (words_[i].rfind(place->tail, 0) != 0) continue;
      tails_.emplace(place->tail, words_[i]);
      erase(i);
    }
  }
}

void CommandWriter::set_flag(const Texts& spellings, bool of_launcher, const std::string& value) {
  bool is_there = false;
  for (const std::string& flag : spellings) {
    auto places = occurrences(words_, region(of_launcher).begin, region(of_launcher).end, flag);
    is_there = is_there || !places.empty();
    std::reverse(places.begin(), places.end());  // from the end, because an insertion moves only what follows it
    for (const FlagAt& at : places) {
      if (!at.value_word) {
        insert(at.word + 1, value);
      } else {
        words_[*at.value_word] = with_value(words_[*at.value_word], at.is_joined, value);
      }
    }
  }
  if (is_there) return;
  const std::size_t at = of_launcher ? insertion_ : words_.size();
  insert(at, spellings.front());
  insert(at + 1, value);
}

void CommandWriter::set_switch(const std::string& flag, bool of_launcher) {
  if (occurrences(words_, region(of_launcher).begin, region(of_launcher).end, flag).empty()) add(flag, of_launcher);
}

void CommandWriter::set_override(const std::string& key, const std::string& value) {
  bool is_there = false;
  for (std::size_t i = script_; i < words_.size(); ++i) {
    const auto word = override_in(words_[i], override_prefix_);
    if (!word || word->key != key) continue;
    words_[i] = word->prefix + word->key + "=" + value;
    is_there = true;
  }
  if (!is_there) add(override_prefix_ + key + "=" + value, false);
}

void CommandWriter::set_tail(const std::string& prefix, const std::string& value) { tails_[prefix] = prefix + value; }

void CommandWriter::add(const std::string& word, bool of_launcher) {
  insert(of_launcher ? insertion_ : words_.size(), word);
}

void CommandWriter::set_value_word(const JobFile& file, const std::string& value) {
  const auto at = std::find(original_.begin(), original_.end(), file.word);
  if (at == original_.end()) return;
  std::string& word = words_[static_cast<std::size_t>(at - original_.begin())];
  word = with_value(word, file.is_joined, value);
}

Texts CommandWriter::remove(const std::string& flag, bool of_launcher) {
  const Region where = region(of_launcher);
  const bool is_prefix = !flag.empty() && flag.back() == '*';
  const std::string wanted = name_of_flag(is_prefix ? flag.substr(0, flag.size() - 1) : flag);
  const bool is_override = flag.back() == '=';
  std::vector<FlagAt> places;
  for (std::size_t i = where.begin; i < where.end; ++i) {
    if (is_override) {
      const auto word = override_in(words_[i], override_prefix_);
      if (word && word->key + "=" == flag) places.push_back({i, i, true});
      continue;
    }
    const std::string name = name_of_flag(words_[i]);
    if (words_[i].front() != '-' || (is_prefix ? name.rfind(wanted, 0) != 0 : name != wanted)) continue;
    places.push_back(occurrences(words_, i, where.end, name).front());
  }
  return remove_at(std::move(places));
}

Texts CommandWriter::remove_at(std::vector<FlagAt> places) {
  Texts gone;
  std::reverse(places.begin(), places.end());
  for (const FlagAt& at : places) {
    const bool has_value = at.value_word && !at.is_joined;
    if (has_value) {
      gone.insert(gone.begin(), words_[*at.value_word]);
      erase(*at.value_word);
    }
    gone.insert(gone.begin(), words_[at.word]);
    erase(at.word);
  }
  return gone;
}

Texts CommandWriter::take() {
  for (const auto& [prefix, word] : tails_) words_.push_back(word);
  tails_.clear();
  return std::move(words_);
}

void CommandWriter::erase(std::size_t at) {
  words_.erase(words_.begin() + static_cast<std::ptrdiff_t>(at));
  original_.erase(original_.begin() + static_cast<std::ptrdiff_t>(at));
  for (std::size_t* edge : {&launcher_.begin, &launcher_.end, &insertion_, &script_}) *edge -= at < *edge ? 1 : 0;
}

void CommandWriter::insert(std::size_t at, const std::string& word) {
  words_.insert(words_.begin() + static_cast<std::ptrdiff_t>(at), word);
  original_.insert(original_.begin() + static_cast<std::ptrdiff_t>(at), std::string::npos);
  if (at < script_) {
    ++script_;
    ++launcher_.end;
  }
}

Region CommandWriter::region(bool of_launcher) const {
  return of_launcher ? launcher_ : Region{script_, words_.size()};
}

}  // namespace krigtune::jobs
