public import AssentCore
import Foundation

/// A user of the service's own, who signs in by a journey that asks for name and password, and again when the session
/// has ended.
///
/// Many requests that need a session at the same time share one sign-in. After one that failed there is a pause, so
/// that a wrong password is not tried for each request.
public actor ServiceAccount: EnforcementCredentials {
    private let server: PolicyServer
    private let journey: String
    private let username: String
    private let password: Secret
    private let transport: any HTTPTransport
    private let limits: HTTPLimits
    private let clock: any WallClock

    private var current: Secret?
    private var pending: Task<Result<Secret, EnforcementError>, Never>?
    private var failure: (error: EnforcementError, pause: WaitingTime)?

    /// How long a sign-in that failed is not repeated.
    private static let pause: TimeInterval = 5

    /// The most steps of a sign-in.
    private static let stepLimit = 4

    /// A user.
    ///
    /// - Parameters:
    ///   - server: where the user signs in.
    ///   - journey: the journey, which asks for nothing but name and password.
    ///   - username: the user's name.
    ///   - password: the user's password.
    ///   - transport: carries the sign-in; it verifies the server.
    ///   - limits: bounds of each step of the sign-in.
    ///   - clock: measures the pause after a sign-in that failed.
    public init(
        _ server: PolicyServer, journey: String, username: String, password: Secret, transport: any HTTPTransport,
        limits: HTTPLimits = .policyServer, clock: any WallClock = SystemClock()
    ) {
        self.server = server
        self.journey = journey
        self.username = username
        self.password = password
        self.transport = transport
        self.limits = limits
        self.clock = clock
    }

    /// The present session, after a sign-in where there is none or it is the refused one.
    public func session(replacing refused: Secret?) async throws(EnforcementError) -> Secret {
        if let current, refused == nil || refused != current { return current }
        current = nil
        if let pending { return try await pending.value.get() }
        if let failure, !failure.pause.isOver(at: clock.now) { throw failure.error }
        let task = Task { await self.signedIn() }
        pending = task
        return try await task.value.get()
    }

    /// A sign-in, which keeps itself what has come of it. Who waits for it goes on later, some before others, and may
    /// say by then that the new session was refused.
    private func signedIn() async -> Result<Secret, EnforcementError> {
        let result: Result<Secret, EnforcementError>
        do throws(EnforcementError) {
            let token = try await signIn()
            (current, failure) = (token, nil)
            result = .success(token)
        } catch {
            failure = (error, WaitingTime(Self.pause, from: clock.now))
            result = .failure(error)
        }
        pending = nil
        return result
    }

    private func signIn() async throws(EnforcementError) -> Secret {
        let query = FormEncoding.encode(["authIndexType": "service", "authIndexValue": journey])
        var url = server.json("authenticate?\(query)")
        var content = JSONObject()
        for _ in 0..<Self.stepLimit {
            let reply = try await PolicyPost(url: url, version: "resource=2.1, protocol=1.0", content: content).send(
                server, session: nil, limits: limits, over: transport)
            guard reply.status == 200, let step = reply.json?.object else {
                let code: EnforcementError.Code = reply.status == 401 ? .notSignedIn : .unavailable
                throw EnforcementError(code, "The service's own sign-in was answered with status \(reply.status).")
            }
            if let token = step["tokenId"]?.string, !token.isEmpty { return Secret(token) }
            content = try filled(step)
            url = server.json("authenticate")
        }
        throw EnforcementError(.notSignedIn, "The service's own journey has more steps than one for services.")
    }

    /// The step with its callbacks answered.
    private func filled(_ step: JSONObject) throws(EnforcementError) -> JSONObject {
        var step = step
        var callbacks: [JSONValue] = []
        for callback in step["callbacks"]?.array ?? [] {
            let answer: String
            switch callback["type"]?.string {
            case "NameCallback": answer = username
            case "PasswordCallback": answer = password.reveal()
            default:
                throw EnforcementError(
                    .notSignedIn, "The service's own journey asks for more than name and password.")
            }
            guard var object = callback.object, var input = object["input"]?.array?.first?.object else {
                throw EnforcementError(.malformedReply, "A step of the service's own journey cannot be answered.")
            }
            input["value"] = .string(answer)
            object["input"] = [.object(input)]
            callbacks.append(.object(object))
        }
        guard !callbacks.isEmpty else {
            throw EnforcementError(.malformedReply, "A step of the service's own journey asks for nothing.")
        }
        step["callbacks"] = .array(callbacks)
        return step
    }
}
