#include "jobs/session/job_paths.h"

#include "jobs/session/varied_command.h"

namespace krigtune::jobs {

std::filesystem::path base_of(const JobRequest& request) {
  if (!request.written_in.empty()) return request.written_in;
  return request.session.empty() ? request.directory : std::filesystem::absolute(request.session).parent_path();
}

Json named_from_session(const JobRequest& request, const Json& set) {
  if (base_of(request).lexically_normal() == request.directory.lexically_normal()) return set;
  Json named = Json::object();
  for (const auto& [file, values] : set.items()) {
    named[(request.directory / file).lexically_normal().string()] = values;
  }
  return named;
}

std::filesystem::path job_file(const std::vector<std::string>& command) {
  const auto first = command.begin() + static_cast<std::ptrdiff_t>(leading_assignments(command));
  const std::vector<std::string> words(first, command.end());
  if (words.empty()) return "job";
  const std::size_t script = script_word(words);
  const bool is_module = script > 0 && (words[script - 1] == "-m" || words[script - 1] == "--module");
  return is_module ? words[script].substr(words[script].rfind('.') + 1) : words[script];
}

std::string job_name(const std::vector<std::string>& command) {
  const std::string stem = job_file(command).stem().string();
  return stem.empty() ? "job" : stem;
}

}  // namespace krigtune::jobs
