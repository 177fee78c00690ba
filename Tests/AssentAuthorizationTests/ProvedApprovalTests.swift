import AssentAuthorization
import AssentCore
import AssentJourney
import AssentTesting
import AssentTokens
import AssentVault
import Foundation
import HTTPTypes
import Testing

@Suite("Approved requests with proofs") struct ProvedApprovalTests {
    /// A gateway that looks at the proof before anything else, and uses an approval up with what it lets through.
    private final class Gateway: Sendable {
        struct State: Sendable {
            var nonce = "before"
            var used = 0
            var proofs: [String] = []
        }

        let state = Locked(State())
        /// Whether it gives another nonce with each answer and never takes it.
        let isNeverContent: Bool

        init(isNeverContent: Bool = false) { self.isNeverContent = isNeverContent }

        func answer(_ exchange: Exchange) -> HTTPReply? {
            state.withLock { state in
                let proof = exchange.field("DPoP") ?? ""
                state.proofs.append(proof)
                let isApproved = exchange.url.contains("_txid=")
                if isNeverContent, isApproved { state.nonce = "n-\(state.proofs.count)" }
                guard let nonce = Self.nonce(in: proof), nonce == state.nonce, !(isNeverContent && isApproved) else {
                    var fields: HTTPFields = [.wwwAuthenticate: #"DPoP error="use_dpop_nonce", algs="ES256""#]
                    if let name = HTTPField.Name("DPoP-Nonce") { fields[name] = state.nonce }
                    return .json(401, [:], headers: fields)
                }
                if isApproved { state.used += 1 }
                return nil
            }
        }

        private static func nonce(in proof: String) -> String? {
            let parts = proof.split(separator: ".")
            guard parts.count == 3, let payload = Base64URL.decode(String(parts[1])) else { return nil }
            return (try? JSONValue.parse(payload))?["nonce"]?.string
        }
    }

    private struct Bench {
        let world = World()
        let gateway: Gateway
        let directory = FileManager.default.temporaryDirectory.appending(path: "assent-\(SystemRandom().uuid())")

        init(_ gateway: Gateway) {
            self.gateway = gateway
            world.change {
                $0.tokenType = "DPoP"
                $0.gateway = { gateway.answer($0) }
            }
        }

        func client() async throws -> AuthorizedClient {
            let keys = SoftwareKeyProvider(unprotectedFile: directory.appending(path: "keys"))
            return try await world.client(.accessToken, dpop: .on(keys: keys))
        }

        func remove() { try? FileManager.default.removeItem(at: directory) }
    }

    private func post() throws -> HTTPCall {
        try HTTPCall(
            .post, url: "\(api)/transfers", headerFields: [.contentType: "application/json"], body: HTTPBody(transfer))
    }

    @Test("An approval that outlives the nonce is used once: the same request goes out again with the new nonce")
    func nonceChanged() async throws {
        let bench = Bench(Gateway())
        defer { bench.remove() }
        let reply = try await bench.client().send(try post()) { approval in
            if approval.isFirstStep { bench.gateway.state.withLock { $0.nonce = "after" } }
            return agree(&approval)
        }
        #expect(reply.status == 201)
        // The first call twice, then the approved one twice; each with a proof of its own.
        let calls = bench.world.calls
        #expect(calls.count == 4 && Set(calls.map { $0.field("DPoP") }).count == 4)
        #expect(calls[2].url == calls[3].url && calls[2].body == calls[3].body && calls[3].url.contains("_txid="))
        #expect(Set(calls.map { $0.field("Idempotency-Key") }).count == 1)
        #expect(bench.gateway.state.withLock { $0.used } == 1)
        #expect(calls.allSatisfy { $0.field("Authorization") == "DPoP access-1" })
    }

    @Test("A gateway that is never content: the approved request goes out twice, was not carried out, and can be asked")
    func endless() async throws {
        let bench = Bench(Gateway(isNeverContent: true))
        defer { bench.remove() }
        let error = await #expect(throws: AuthorizationError.self) {
            try await bench.client().send(try post(), approve: agree)
        }
        #expect(error?.code == .notSent && error?.pending?.transactionID == txid)
        #expect(bench.world.calls.filter { $0.url.contains("_txid=") }.count == 2)
        #expect(bench.gateway.state.withLock { $0.used } == 0)
    }

    @Test(
        "A proof that was used before: what something between has sent twice may be carried out, so the outcome is unknown",
        arguments: [(HTTPRequest.Method.put, AuthorizationError.Code.outcomeUnknown), (.get, .notSent)])
    func usedBefore(method: HTTPRequest.Method, code: AuthorizationError.Code) async throws {
        let bench = Bench(Gateway())
        defer { bench.remove() }
        let carriedOut = Locked(0)
        bench.world.change {
            // The answer to the second copy, where the one to the first was lost.
            $0.gateway = { exchange in
                guard exchange.url.contains("_txid=") else { return nil }
                carriedOut.withLock { $0 += 1 }
                return .json(401, [:], headers: [.wwwAuthenticate: #"DPoP error="invalid_dpop_proof""#])
            }
            if method == .get { $0.statement = { $0["contentType"] = nil } }
        }
        let call = HTTPCall(
            try HTTPRequest(
                method, url: "\(api)/transfers", headerFields: method == .put ? [.contentType: "application/json"] : [:]
            ),
            body: method == .put ? HTTPBody(transfer) : nil)
        let client = try await bench.client()
        let error = await #expect(throws: AuthorizationError.self) { try await client.send(call, approve: agree) }
        #expect(error?.code == code && error?.pending?.transactionID == txid)
        #expect(carriedOut.withLock { $0 } == 1)
        // The same holds for the question about it.
        let pending = try #require(error?.pending)
        await #expect(throws: AuthorizationError.like(code)) { try await client.ask(call, about: pending) }
        #expect(carriedOut.withLock { $0 } == 2)
    }
}
