import AssentPeers
import Foundation
import NIOCore
import NIOPosix

/// nginx as one process, with a configuration of its own in a directory of its own.
enum Nginx {
    /// Starts it with these `http` lines and waits until it listens on `ports`.
    static func start(_ lines: String, in directory: String, ports: [Int]) async throws -> ChildProcess {
        // One process instead of a master and a worker: the same work, and one line in /proc to read.
        let configuration = """
            daemon off; master_process off;
            pid \(directory)/pid; error_log \(directory)/error.log warn;
            events { worker_connections 1024; }
            http {
                access_log off; default_type application/json; keepalive_requests 10000000; keepalive_timeout 600s;
                client_body_temp_path \(directory)/1; proxy_temp_path \(directory)/2; fastcgi_temp_path \(directory)/3;
                uwsgi_temp_path \(directory)/4; scgi_temp_path \(directory)/5;
                \(lines)
            }

            """
        let file = directory + "/nginx.conf"
        try Data(configuration.utf8).write(to: URL(fileURLWithPath: file))
        let process = try ChildProcess(executable, ["-e", directory + "/error.log", "-p", directory, "-c", file])
        for port in ports where !(await isListening(port)) {
            process.stop()
            let log = try? String(contentsOfFile: directory + "/error.log", encoding: .utf8)
            throw BenchFailure("nginx does not start: \(log ?? "no log")")
        }
        return process
    }

    /// Starts it as a service with one small answer, and says where it listens.
    static func accounts(in directory: String) async throws -> (process: ChildProcess, port: Int) {
        let ports = try await freePorts(1)
        guard let port = ports.first else { throw BenchFailure("no free port") }
        let process = try await start(
            "server { listen 127.0.0.1:\(port); \(AccountsReply.location) }", in: directory, ports: ports)
        return (process, port)
    }

    /// The lines that make a server on loopback speak TLS.
    static func tls(chain: String, key: String) -> String {
        """
        ssl_certificate \(chain); ssl_certificate_key \(key); ssl_protocols TLSv1.2 TLSv1.3;
        """
    }

    /// Ports on loopback that nobody listens on now.
    static func freePorts(_ count: Int) async throws -> [Int] {
        var channels: [any Channel] = []
        for _ in 0..<count {
            channels.append(
                try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton).bind(host: "127.0.0.1", port: 0)
                    .get())
        }
        let ports = channels.compactMap { $0.localAddress?.port }
        for channel in channels { try await channel.close() }
        return ports
    }

    private static var executable: String {
        get throws {
            let path = (ProcessInfo.processInfo.environment["PATH"] ?? "") + ":/usr/sbin:/usr/local/sbin"
            let found = path.split(separator: ":").map { "\($0)/nginx" }.first {
                FileManager.default.isExecutableFile(atPath: $0)
            }
            guard let found else { throw BenchFailure("nginx is missing: run Scripts/setup.sh") }
            return found
        }
    }

    private static func isListening(_ port: Int) async -> Bool {
        for _ in 0..<100 {
            if let channel = try? await ClientBootstrap(group: MultiThreadedEventLoopGroup.singleton)
                .connect(host: "127.0.0.1", port: port).get()
            {
                try? await channel.close()
                return true
            }
            try? await Task.sleep(for: .milliseconds(100))
        }
        return false
    }
}
