import Foundation

/// What HAProxy is started with before several nodes, as in `Examples/cluster`: it sends each connection to the next
/// node, and ends no TLS.
package struct HAProxyFile: Sendable {
    private static let program = "/usr/sbin/haproxy"

    private var lines: [String]

    /// A file without ports.
    ///
    /// - Parameter defaults: what it says beside the usual of every port.
    package init(defaults: String...) {
        lines =
            [
                "global", "    maxconn 400", "defaults", "    mode tcp", "    timeout connect 10m",
                "    timeout client \(Patience.seconds)s", "    timeout server \(Patience.seconds)s",
            ] + defaults.map { "    \($0)" }
    }

    /// Adds a port whose connections go to these ports in turn, all of 127.0.0.1.
    package mutating func listen(_ name: String, at port: ReservedPort, before nodes: [Int]) {
        lines += ["listen \(name)", "    balance roundrobin", "    bind 127.0.0.1:\(port.port)"]
        lines += nodes.enumerated().map { index, node in "    server node\(index) 127.0.0.1:\(node)" }
    }

    /// Adds a port where HAProxy tells what it has done.
    package mutating func addStatistics(at port: ReservedPort) {
        lines += [
            "listen statistics", "    mode http", "    bind 127.0.0.1:\(port.port)", "    stats enable",
            "    stats uri /",
        ]
    }

    /// Writes the file into a directory.
    ///
    /// - Returns: the words that start HAProxy with it, the program first.
    /// - Throws: ``SpawnFailure`` when it is not installed.
    package func write(in directory: String) throws -> [String] {
        guard FileManager.default.isExecutableFile(atPath: Self.program) else {
            throw SpawnFailure(description: "run Scripts/setup.sh: it installs HAProxy")
        }
        let file = directory + "/haproxy.cfg"
        try Data((lines.joined(separator: "\n") + "\n").utf8).write(to: URL(fileURLWithPath: file))
        return [Self.program, "-db", "-f", file]
    }
}
