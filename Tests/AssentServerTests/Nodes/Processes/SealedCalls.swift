#if PostgreSQL && os(Linux)
import AssentCore
import AssentPayload
import Foundation
import HTTPTypes
import NIOHTTP1
import Testing

@testable import AssentEngine
@testable import AssentServer

/// Sealed calls, in one session, to processes of `assent serve` on one database. The service behind them keeps what
/// comes to it, by the call's name.
struct SealedCalls: Sendable {
    /// What makes a call single among the nodes.
    enum Kind: CaseIterable, Sendable {
        /// The proof inside.
        case proof
        /// The session's row: there is no proof inside.
        case row
        /// The same, with a proof inside that nobody looks at.
        case rowBesideProof

        fileprivate var isPublic: Bool { self != .proof }
        fileprivate var hasProof: Bool { self != .row }
    }

    /// What became of a message.
    enum Outcome: Sendable, Equatable {
        /// The service's reply, or the gateway's, sealed for this very message.
        case answered(Int)
        /// What nobody has sealed.
        case refused(PayloadRefusal)
        /// There is no reply: nobody knows what became of it.
        case unknown

        static let executed = Outcome.answered(201)
    }

    /// The gateway as clients know it, whichever node they reach.
    private static let origin = "https://localhost:9443"
    private static let redirect = "http://127.0.0.1/callback"

    private let session: SealedChannel
    private let key: ProofKey
    private let token: String
    private let last = Locked<UInt64>(0)

    /// - Parameters:
    ///   - world: whose nodes they are.
    ///   - node: where Ana signs in.
    ///   - gateway: where the handshake goes.
    ///   - known: the nodes' static key; `nil` makes one.
    /// - Throws: what the exchanges throw.
    init(
        _ world: NodeProcesses, at node: ServeProcess, gateway: String, key known: PayloadKeys.Listed? = nil
    ) async throws {
        key = try ProofKey()
        token = try await Self.token(of: key, at: node)
        let origin = try Origin(Self.origin)
        var payloadKey = known
        if payloadKey == nil { payloadKey = try await world.payloadKey() }
        let handshake = try SealedChannel.handshake(at: origin, try #require(payloadKey))
        session = try await SealedChannel(at: origin, handshake) { body in
            try await node.send(
                "POST", gateway + "/assent-pe/1/handshake", [("Content-Type", "application/json")], body: body)
        }
    }

    /// The file of the nodes with a route for everybody and one of users.
    static func file(_ text: String) -> String {
        let upstream = text.firstMatch(of: /upstream: "([^"]+)"/)?.output.1 ?? ""
        return text.replacing(
            "routes: [", with: "routes: [{name: open, path: /open, upstream: \"\(upstream)\", public: true}, "
        ).replacing(
            "        policies:\n",
            with: """
                        policies:
                          - name: calls
                            resources: ["https://localhost:*/calls/*"]
                            actionValues: {GET: true, POST: true}
                            subject: {type: AuthenticatedUsers}

                """)
    }

    // MARK: - Messages

    /// Seals an unsafe call as a new message.
    func message(_ kind: Kind, _ name: String, nonce: String) async throws -> SealedChannel.Sealed {
        let path = (kind.isPublic ? "/open/" : "/calls/") + name
        var fields: HTTPFields = [.contentType: "application/json"]
        if kind.hasProof {
            let proof = try await proof("POST", path, nonce: nonce, issuedAt: now)
            for (name, value) in ServerFixture.dpop(token, proof) {
                fields.append(HTTPField(name: try #require(HTTPField.Name(name)), value: value))
            }
        }
        return try session.sealed(session.request(.post, path, fields), Array("{}".utf8), number: next())
    }

    /// Sends a message, or a copy of it, to a gateway.
    func send(_ message: SealedChannel.Sealed, to gateway: String, by node: ServeProcess) async -> Outcome {
        let url = gateway + "/assent-pe/1/message"
        guard let answer = try? await node.send("POST", url, SealedClient.field, body: message.bytes) else {
            return .unknown
        }
        if let refusal = answer.refusal { return .refused(refusal) }
        guard answer.status == 200, let opened = try? session.open(answer, to: message.head) else { return .unknown }
        return .answered(opened.status)
    }

    /// Makes a safe call, which a client sends once more as another message, by these gateways in turn, when it has no
    /// sealed reply: whether it was answered.
    func read(_ name: String, from gateways: [String], by node: ServeProcess) async throws -> Bool {
        for attempt in 0..<20 {
            let message = try session.sealed(session.request(.get, "/open/" + name), number: next())
            let gateway = gateways[attempt % gateways.count]
            if await send(message, to: gateway, by: node) == .answered(200) { return true }
        }
        return false
    }

    /// Makes one transfer of a user, with or without the transaction that it needs: what was sealed for it.
    func transfer(
        _ userSession: String, transaction: String? = nil, to gateway: String, by node: ServeProcess
    ) async throws -> Answer {
        var fields = HTTPFields()
        for (name, value) in ServerFixture.jsonFields + ServerFixture.session(userSession) {
            fields.append(HTTPField(name: try #require(HTTPField.Name(name)), value: value))
        }
        let path = "/transfers" + (transaction.map { "?_txid=\($0)" } ?? "")
        let content = Array(#"{"to":"Bob","amount":"0.01","currency":"EUR"}"#.utf8)
        let message = try session.sealed(session.request(.post, path, fields), content, number: next())
        let url = gateway + "/assent-pe/1/message"
        let answer = try await node.send("POST", url, SealedClient.field, body: message.bytes)
        let opened = try session.open(answer, to: message.head)
        let told = opened.response.headerFields.map { ($0.name.rawName, $0.value) }
        return Answer(status: opened.status, fields: HTTPHeaders(told), bytes: opened.content)
    }

    private func next() -> UInt64 {
        last.withLock { last in
            last += 1
            return last
        }
    }

    // MARK: - Proofs

    private var now: Int64 { SystemClock().epochSeconds }

    /// A nonce of the gateway: for minutes after the database's first start proofs need one.
    func nonce(at node: ServeProcess) async throws -> String {
        let path = "/calls/nonce"
        let old = try await proof("GET", path, nonce: nil, issuedAt: now - 3600)
        let answer = try await node.send("GET", try #require(node.gateway) + path, ServerFixture.dpop(token, old))
        return try #require(answer["DPoP-Nonce"], "\(answer.status) \(answer.text)")
    }

    private func proof(_ method: String, _ path: String, nonce: String?, issuedAt: Int64) async throws -> String {
        try await key.proof(
            ProofKey.Subject(
                method: method, url: Self.origin + path, token: token, nonce: nonce, issuedAt: issuedAt))
    }

    /// An access token of Ana's that belongs to a key.
    private static func token(of key: ProofKey, at node: ServeProcess) async throws -> String {
        let session = try await node.signIn("ana", password: try #require(node.password))
        let verifier = SystemRandom().token()
        let query = ServerFixture.query([
            ("response_type", "code"), ("client_id", "bank-app"), ("redirect_uri", redirect), ("scope", "openid"),
            ("state", "s"), ("code_challenge_method", "S256"),
            ("code_challenge", Base64URL.encode(SHA2.sha256(verifier.utf8))),
        ])
        let redirected = try await node.send(
            "GET", node.server + "/oauth2/realms/root/realms/alpha/authorize?" + query, ServerFixture.session(session))
        let code = try #require(redirected.parameter("code"), "\(redirected.status) \(redirected.text)")
        func exchange(nonce: String?) async throws -> Answer {
            let subject = ProofKey.Subject(
                method: "POST", url: RacedNodes.issuer + "/access_token", token: "", nonce: nonce,
                issuedAt: SystemClock().epochSeconds)
            let proof = try await key.proof(subject, claims: { $0["ath"] = nil })
            return try await RacedNodes.sendToken(
                [
                    ("grant_type", "authorization_code"), ("code", code), ("client_id", "bank-app"),
                    ("redirect_uri", Self.redirect), ("code_verifier", verifier),
                ], [("DPoP", proof)], to: node)
        }
        var answer = try await exchange(nonce: nil)
        if answer.error == "use_dpop_nonce" {
            let nonce: String = try #require(answer["DPoP-Nonce"])
            answer = try await exchange(nonce: nonce)
        }
        #expect(answer.json["token_type"] == "DPoP", "\(answer.text)")
        return try #require(answer.json["access_token"]?.string)
    }
}

extension NodeProcesses {
    /// How often each unsafe call was executed, by its name.
    var executions: [String: Int] {
        let names = upstream.requests.filter { $0.line.hasPrefix("POST ") }.compactMap { request in
            request.line.split(separator: " ").dropFirst().first?.split(separator: "/").last.map(String.init)
        }
        return Dictionary(names.map { ($0, 1) }, uniquingKeysWith: +)
    }
}
#endif
