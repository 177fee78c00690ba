import AssentCore
import AssentTokens
import HTTPTypes
import Logging

/// Finds the advice in a reply and decides whether to believe it. A resource that was broken into must not lead its
/// users anywhere but to the configured server.
struct AdviceGate: Sendable {
    private let server: Origin
    private let path: String
    let logger: Logger

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
        try check(server: received.server)
        return received.advice
    }

    /// Whether an advice leads to the configured server, as far as it says.
    ///
    /// - Throws: ``AuthorizationError`` with code `untrustedAdvice`.
    func check(_ advice: Advice) throws(AuthorizationError) { try check(server: advice.server) }

    private func check(server named: String?) throws(AuthorizationError) {
        guard let named else { return }
        let other = Self.path(of: named)
        guard (try? Origin(named)) == server, other == path || other.hasPrefix(path + "/"),
            !other.split(separator: "/").contains("..")
        else {
            throw AuthorizationError(.untrustedAdvice, "The resource names another server than the configured one.")
        }
    }

    private static func path(of url: String) -> String {
        guard let request = try? HTTPRequest(.get, url: URLText.withoutQuery(url)), var path = request.path else {
            return ""
        }
        while path.hasSuffix("/") { path.removeLast() }
        return path
    }
}
