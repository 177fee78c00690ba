/// What `strace -f -y -o` writes about `fsync` and `fdatasync`.
package enum SyncTrace {
    /// The files and directories that were synced with success, in the order in which the calls have ended.
    ///
    /// Where another thread's call comes between, a call stands in two lines: how it began, with the file, and how it
    /// ended, without.
    ///
    /// - Parameter trace: what was written.
    /// - Returns: their paths.
    package static func synced(in trace: String) -> [String] {
        var begun: [String: String] = [:]
        var synced: [String] = []
        for line in trace.split(separator: "\n") {
            if let call = line.wholeMatch(of: /(\d+) +f(?:data)?sync\(\d+<(.+)> <unfinished \.\.\.>/) {
                begun[String(call.1)] = String(call.2)
            } else if let call = line.wholeMatch(of: /\d+ +f(?:data)?sync\(\d+<(.+)>\) += 0/) {
                synced.append(String(call.1))
            } else if let end = line.wholeMatch(of: /(\d+) +<\.\.\. f(?:data)?sync resumed>\) += 0/),
                let file = begun[String(end.1)]
            {
                synced.append(file)
            }
        }
        return synced
    }
}
