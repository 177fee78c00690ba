#if PostgreSQL && os(Linux)
import AssentStore
import Foundation

/// Accepts one connection on a Unix socket and says what it is told, or nothing.
final class FakeServer: Sendable {
    private let directory: URL
    private let listener: Int32

    init(greeting: [UInt8]?) throws {
        directory = URL(filePath: "/tmp/assent-fake-\(UUID().uuidString.prefix(8))")
        try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: false)
        listener = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0)
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: "\(directory.path)/.s.PGSQL.5432".utf8) }
        let isListening = withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(listener, $0, socklen_t(MemoryLayout<sockaddr_un>.size)) == 0 && listen(listener, 1) == 0
            }
        }
        guard isListening, let greeting else { return }
        Thread.detachNewThread { [listener] in
            let client = accept(listener, nil, nil)
            var request = [UInt8](repeating: 0, count: 4096)
            _ = recv(client, &request, request.count, 0)
            _ = send(client, greeting, greeting.count, Int32(MSG_NOSIGNAL))
            // Until the client goes.
            _ = recv(client, &request, request.count, 0)
            close(client)
        }
    }

    deinit {
        shutdown(listener, Int32(SHUT_RDWR))
        close(listener)
        try? FileManager.default.removeItem(at: directory)
    }

    var host: PostgreSQLConfiguration.Host { .init(directory.path) }

    /// Everybody may come in, the version, and that it is ready.
    static func greeting(version: String) -> [UInt8] {
        let setting = Array("server_version\0\(version)\0".utf8)
        return [0x52, 0, 0, 0, 8, 0, 0, 0, 0] + [0x53, 0, 0, 0, UInt8(setting.count + 4)] + setting + [
            0x5A, 0, 0, 0, 5, 0x49,
        ]
    }
}
#endif
