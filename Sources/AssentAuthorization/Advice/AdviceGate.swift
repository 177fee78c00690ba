import AssentCore
import AssentTokens
import HTTPTypes
import Logging

/// Finds the advice in a reply and decides whether to believe it. A resource that was broken into must not lead its
/// users anywhere but to the configured server.
struct AdviceGate: Sendable {
    private let server: Origin
    private let path: String
    private let logger: Logger

    init(server: String, logger: Logger) throws(AuthorizationError) {
        do throws(WireError) {
            self.server = try Origin(server)
        } catch {
            throw AuthorizationError(.invalidConfiguration, "The server's URL cannot be used: \(error.detail).")
        }
        path = Self.path(of: server)
        self.logger = logger
    }

    /// The advice in `reply`, whose body may be read for it and is then in memory.
    ///
    /// - Returns: `nil` when there is none, or one that cannot be read: the reply then speaks for itself.
    /// - Throws: ``AuthorizationError`` with code `untrustedAdvice`, and what reading the body throws.
    func advice(in reply: inout HTTPReply, access: ResourceAccess, limit: Int) async throws -> Advice? {
        let received: ReceivedAdvice?
        do {
            received = try await ReceivedAdvice.find(
                in: &reply, acceptsDecisions: access.acceptsDecisions, limit: limit)
        } catch let error as WireError {
            logger.info("an advice cannot be read", metadata: ["reason": "\(error)"])
            return nil
        }
        guard let received else { return nil }
        if let named = received.server {
            let other = Self.path(of: named)
            guard received.serverOrigin == server, other == path || other.hasPrefix(path + "/"),
                !other.split(separator: "/").contains("..")
            else {
                throw AuthorizationError(
                    .untrustedAdvice, "The resource names another server than the configured one.")
            }
        }
        return received.advice
    }

    private static func path(of url: String) -> String {
        guard let request = try? HTTPRequest(.get, url: URLText.withoutQuery(url)), var path = request.path else {
            return ""
        }
        while path.hasSuffix("/") { path.removeLast() }
        return path
    }
}
