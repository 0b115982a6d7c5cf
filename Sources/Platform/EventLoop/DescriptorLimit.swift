import Glibc

/// How many descriptors the process may have open at once: RLIMIT_NOFILE.
///
/// Where a system, a shell or a container runtime starts programs, the soft limit is mostly 1024, for the sake of
/// programs that use select(2). Nothing here does, so `Loop.run` raises it to the hard limit.
public enum DescriptorLimit {
  /// How many descriptors connections leave to everything else: the broker's, the database's, files, the listening
  /// sockets, and the connections of operators.
  public static let reserve = 256

  /// How many descriptors the process may have at the moment (the soft limit).
  public static var current: Int { limits.soft }

  /// How many it may have once the limit is raised (the hard limit).
  public static var highest: Int { limits.hard }

  /// How many connections a server may hold where there may be `count` descriptors: all but the reserve, and half of
  /// them where there are hardly any.
  public static func connections(within count: Int) -> Int { max(1, count - min(reserve, count / 2)) }

  /// Raises the soft limit to the hard one, which everybody may.
  static func raise() {
    var limit = rlimit()
    guard unsafe getrlimit(resource, &limit) == 0 else { return }
    limit.rlim_cur = limit.rlim_max
    // What fails leaves the limit as it is, and `current` tells.
    unsafe setrlimit(resource, &limit)
  }

  private static let resource = __rlimit_resource_t(RLIMIT_NOFILE.rawValue)

  private static var limits: (soft: Int, hard: Int) {
    var limit = rlimit()
    // It cannot fail with these arguments; and what it says where it did is that there is no limit.
    guard unsafe getrlimit(resource, &limit) == 0 else { return (.max, .max) }
    return (Int(clamping: limit.rlim_cur), Int(clamping: limit.rlim_max))
  }
}
