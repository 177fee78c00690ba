import AssentConfiguration
import AssentCore
import AssentEngine
import AssentStore
import Foundation

/// What else a start would be refused for: its directory, its ports, the files of its users.
extension ServerExamination {
    /// What is wrong with the data directory; `nil` for one that can be used or made.
    static func directory(_ configuration: ServerConfiguration) -> Diagnosis? {
        let path = configuration.dataDirectory
        guard FileManager.default.fileExists(atPath: path) else {
            // The nearest directory that is there must let this user make the others.
            var above = URL(fileURLWithPath: path).deletingLastPathComponent()
            while !FileManager.default.fileExists(atPath: above.path), above.path != "/" {
                above.deleteLastPathComponent()
            }
            guard access(above.path, W_OK | X_OK) == 0 else {
                return Diagnosis(
                    .problem, "\(path): dataDirectory cannot be made, because this user may not write in \(above.path)")
            }
            return nil
        }
        do {
            _ = try DataDirectory(path)
            return nil
        } catch {
            return Diagnosis(.problem, error.explanation)
        }
    }

    /// The names of the configuration's users that are stored already.
    static func storedUsers(_ configuration: ServerConfiguration) -> SQLStatement {
        let named = configuration.realms.flatMap { realm in realm.users.map { (realm.name, $0.username) } }
        let condition = named.reduce("1 = 0" as SQL) { condition, user in
            "\(condition) OR (realm = \(user.0) AND username = \(user.1))"
        }
        return .read("SELECT realm, username FROM users WHERE \(condition)")
    }

    /// Whether the users that a start would make can be made. Nothing is read for those that are stored.
    static func users(_ configuration: ServerConfiguration, stored rows: [SQLRow]) -> [Diagnosis] {
        let stored = Set(rows.compactMap { try? [$0.text("realm"), $0.text("username")] })
        let cost = PasswordHash.Cost(logN: configuration.passwordCost.trailingZeroBitCount)
        return configuration.realms.flatMap { realm in
            realm.users.filter { !stored.contains([realm.name, $0.username]) }.compactMap { user in
                do {
                    try UserSeeding.check(user, cost: cost, isDevelopment: configuration.isDevelopment)
                    return nil
                } catch {
                    return Diagnosis(
                        .problem, "the user \(user.username) of \(realm.name) cannot be made: \(error.explanation)")
                }
            }
        }
    }

    /// Ports that a start would not get. A server that runs on the same directory has them rightly.
    static func ports(_ configuration: ServerConfiguration) -> [Diagnosis] {
        let wanted = [("port", configuration.port), ("gateway.port", configuration.gateway?.port ?? 0)]
        return wanted.filter { $0.1 != 0 && isTaken($0.1, on: configuration.host) }.map { key, port in
            isRunning(configuration)
                ? Diagnosis(.fine, "\(key) \(port) is in use, and a server runs on this data directory")
                : Diagnosis(
                    .problem, "\(key) \(port) is taken by another program: end that one, or choose another port")
        }
    }

    private static func isRunning(_ configuration: ServerConfiguration) -> Bool {
        let file = open(configuration.dataDirectory + "/serve.lock", O_RDONLY | O_NOFOLLOW | O_CLOEXEC)
        guard file >= 0 else { return false }
        defer { close(file) }
        guard flock(file, LOCK_SH | LOCK_NB) == 0 else { return true }
        // A child process that was forked meanwhile has the file open, too, and would keep a server from starting.
        _ = flock(file, LOCK_UN)
        return false
    }

    /// Whether another program listens there. What cannot be found out is left to the start.
    private static func isTaken(_ port: Int, on host: String) -> Bool {
        var hints = addrinfo()
        hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV
        hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
        var found: UnsafeMutablePointer<addrinfo>?
        guard getaddrinfo(host, String(port), &hints, &found) == 0, let first = found else { return false }
        defer { freeaddrinfo(found) }
        let socket = socket(first.pointee.ai_family, first.pointee.ai_socktype | Int32(SOCK_CLOEXEC.rawValue), 0)
        guard socket >= 0 else { return false }
        defer { close(socket) }
        // As the server does: a port that a connection was on a moment ago is free.
        var yes: Int32 = 1
        setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, socklen_t(MemoryLayout<Int32>.size))
        return bind(socket, first.pointee.ai_addr, first.pointee.ai_addrlen) != 0 && errno == EADDRINUSE
    }
}
