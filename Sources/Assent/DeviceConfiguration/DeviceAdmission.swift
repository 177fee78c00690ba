import AssentAuthorization
import AssentCore
import AssentTrust
import Foundation

/// Holds the app to what the server tells this version of it (docs/device-configuration.md, "What an app does"), before
/// it calls, registers, or signs somebody in. The server refuses all of that as well: this spares the way there.
///
/// As a layer it is on the ways of journeys and of a signing device. A sign-out passes by: it only takes something
/// away.
struct DeviceAdmission: HTTPMiddleware {
    private let told: DeviceConfigurationKeeper

    /// The app has no settings of its own for these.
    private static let wishes = DeviceDecision.Wishes(implicit: true, stateless: true)

    init(_ told: DeviceConfigurationKeeper) { self.told = told }

    /// Lets this version of the app call.
    ///
    /// - Parameter call: what is to be sent. Where nothing is known yet, the server is waited for no longer than it may
    ///   take.
    /// - Throws: `HTTPTransportError` `outdatedApplication`; `trustExpired` when the vault cannot be read; `timedOut`.
    @Sendable func admitCall(_ call: HTTPCall? = nil) async throws(HTTPTransportError) {
        try await Self.check(decision(waits: false, until: call.map(told.deadline(of:)))?.calls)
    }

    /// Lets this version of the app register. The server is waited for, and asked again where it was out of reach.
    ///
    /// - Throws: `HTTPTransportError` `outdatedApplication`; `serverNotReachable` when the server has never told what
    ///   this version may do; `trustExpired`.
    @Sendable func admitRegistration() async throws(HTTPTransportError) {
        try await Self.check(decision(waits: true)?.registers)
    }

    /// Lets a user in who is only remembered.
    ///
    /// - Throws: `ResourceError`.
    func admitImplicit() async throws {
        guard let decision = try await decision(waits: false) else { return }
        try Self.check(decision.calls)
        guard decision.implicit else {
            throw ResourceError(
                .fetchImplicitResource, .userNotAuthenticatedImplicitly,
                "The server does not let this app call for users whom it only remembers.")
        }
    }

    /// Lets a user sign in so that nothing is left of it.
    ///
    /// - Throws: `HTTPTransportError`, `ResourceError`.
    func admitStateless() async throws {
        guard let decision = try await decision(waits: false) else { return }
        try Self.check(decision.calls)
        guard decision.stateless else {
            throw ResourceError(
                .generic, .statelessRefused, "The server does not let this app's users sign in so that nothing is left."
            )
        }
    }

    /// Lets a link lead a browser to a page.
    ///
    /// - Throws: `HTTPTransportError`, `ResourceError`.
    func admitLink(to target: String) async throws {
        guard let decision = try await decision(waits: false) else { return }
        try Self.check(decision.calls)
        // Where the server was never heard, it decides itself.
        guard decision.registers != .unknown else { return }
        guard !decision.webLinks.isEmpty else {
            throw ResourceError(.generic, .webLinkDisabled, "The server makes no links for this app.")
        }
        guard decision.webLinks.contains(where: { $0.utf8.elementsEqual(target.utf8) }) else {
            throw ResourceError(.fetchResource, .invalidRequest, "The server does not list this page for this app.")
        }
    }

    func intercept(_ call: HTTPCall, next: HTTPPipeline.Next) async throws -> HTTPReply {
        let begun = told.clock.now
        try await admitCall(call)
        return try await next.send(call.afterWaiting(since: begun, told.clock))
    }

    private func decision(
        waits: Bool, until deadline: Date? = nil
    ) async throws(HTTPTransportError) -> DeviceDecision? {
        do {
            return try await told.decision(Self.wishes, waits: waits, isNeeded: waits, until: deadline)
        } catch let error as HTTPTransportError {
            throw error
        } catch {
            throw HTTPTransportError(
                .trustExpired, "The vault, which may have a newer device configuration, cannot be read.",
                suggestion: "Make the vault readable, and call again.")
        }
    }

    /// Without a trust file in force nothing is called anyway.
    private static func check(_ permission: DeviceDecision.Permission?) throws(HTTPTransportError) {
        switch permission {
        case .allowed, nil: return
        case .outdated:
            throw HTTPTransportError(
                .outdatedApplication, "The server does not serve this version of the app any more.")
        case .development:
            throw HTTPTransportError(
                .outdatedApplication, "The app is one for development, and the server is not.",
                suggestion: "Install the released app.")
        case .unknown:
            throw HTTPTransportError(
                .serverNotReachable, "The server has never said what this version of the app may do.")
        }
    }
}
