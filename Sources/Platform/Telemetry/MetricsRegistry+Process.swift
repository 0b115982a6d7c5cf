extension MetricsRegistry {
  /// Adds what every process is asked for, under the names that Prometheus' own clients give it: CPU time, memory,
  /// descriptors, start.
  public func addProcess() {
    counter(
      "process_cpu_seconds_total", "CPU time that the process has used, and the kernel for it.",
      readingAmount: { ProcessUsage.cpuSeconds })
    gauge("process_resident_memory_bytes", "Memory of the process that is in use.") { ProcessUsage.residentMemory }
    gauge("process_open_fds", "Open descriptors.") { ProcessUsage.openDescriptors }
    gauge("process_max_fds", "How many descriptors may be open.") { ProcessUsage.maximumDescriptors }
    let start = ProcessUsage.startTime
    gauge("process_start_time_seconds", "When the process began, in seconds since 1970.") { start }
  }
}
