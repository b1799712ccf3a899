#include "jobs/session/job_paths.h"

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

}  // namespace krigtune::jobs
