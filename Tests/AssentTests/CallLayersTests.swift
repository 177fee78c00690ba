import Assent
import AssentCore
import AssentPeers
import AssentTesting
import AssentTransportNIO
import Foundation
import HTTPTypes
import Testing

/// docs/architecture.md, "A client call", rows 6 to 13.
@Suite("The layers of a call, from the app to the network")
struct CallLayersTests {
    /// What happened, in its order.
    private struct Events: Sendable {
        private static let fields = [
            "idempotency-key", "authorization", "dpop", "x-outer", "x-inner", "cookie", "user-agent",
        ]

        private let kept = Locked<[String]>([])

        var all: [String] { kept.withLock { $0 } }

        func clear() { kept.withLock { $0 = [] } }

        func note(_ event: String) { kept.withLock { $0.append(event) } }

        /// Notes which layers have left something in a call.
        func note(_ who: String, _ fields: HTTPFields) {
            let names = Set(fields.map(\.name.canonicalName))
            note(([who] + Self.fields.filter(names.contains)).joined(separator: " "))
        }
    }

    private struct Probe: IntegrityProbe {
        let kind = IntegrityKind.debugger
        let events: Events

        func finding() -> String? {
            events.note("probe")
            return nil
        }
    }

    /// A layer of the app, which leaves a field with its name.
    private struct Own: HTTPMiddleware {
        let name: String
        let events: Events

        func intercept(_ call: HTTPCall, next: HTTPPipeline.Next) async throws -> HTTPReply {
            var call = call
            guard call.request.authority == "api.bank.example", let field = HTTPField.Name("X-\(name)") else {
                return try await next.send(call)
            }
            events.note(name, call.request.headerFields)
            call.request.headerFields[field] = "1"
            return try await next.send(call)
        }
    }

    /// The end of the way: the bank is behind a transport that a test exchanges.
    private struct Network: HTTPTransport {
        let events: Events
        let servers: any HTTPTransport
        let bank: Locked<any HTTPTransport>

        @concurrent func send(_ call: HTTPCall) async throws -> HTTPReply {
            if call.request.authority == "api.bank.example" {
                events.note("network \(call.request.path ?? "")", call.request.headerFields)
                return try await bank.withLock { $0 }.send(call)
            }
            guard call.request.path?.hasSuffix("/access_token") == true else { return try await servers.send(call) }
            return .json(200, ["access_token": "access", "token_type": "DPoP", "expires_in": 600])
        }
    }

    @Test("Probes, step-up, credentials and proof, the app's own, cookies, User-Agent, sealing, pins: in this order")
    func order() async throws {
        let directory = try TemporaryDirectory()
        let (servers, listener, events) = (Servers(), SealedListener(), Events())
        listener.cookie.withLock { $0 = "node=3; Path=/" }
        let bank = Locked<any HTTPTransport>(InMemoryTransport { try await listener.answer($0) })
        let key = try Assent.PayloadEncryption.Key(listener.publicKey)
        let keys = SoftwareKeyProvider(unprotectedFile: directory.url.appending(path: "keys"))
        let assent = try servers.assent {
            let inner: any HTTPTransport = $0.transport ?? InMemoryTransport { _ in .json(500, [:]) }
            $0.transport = Network(events: events, servers: inner, bank: bank)
            $0.dpop = .on(keys: keys)
            $0.payloadEncryption = [SealedListener.origin: .init(keys: [key])]
            $0.layers = [Own(name: "Outer", events: events), Own(name: "Inner", events: events)]
            $0.integrity.probes = [Probe(events: events)]
            $0.integrity.controls = IntegrityControls(debugger: .refuse, preload: .off, rooted: .off)
        }
        try await assent.tokens.install(Session(token: Secret("SESS")))
        let url = SealedListener.origin + "/transfers"
        let content: JSONValue = ["amount": "200.00"]
        let payment = ResourceRequest.post(url, json: content)
        // Afterwards there are a token, a session to seal in, and a cookie.
        _ = try await assent.userClient.sendAuthenticatedRequest(payment)
        events.clear()

        let above = "idempotency-key authorization dpop"
        let order = ["probe", "Outer \(above)", "Inner \(above) x-outer", "network /assent-pe/1/message"]
        let paid = try await assent.userClient.sendAuthenticatedRequest(payment)
        #expect(paid.status == 201)
        #expect(events.all == order)

        // What was put in below the app's own layers and above the sealing.
        let (arrived, _) = try #require(listener.calls.last)
        let fields = arrived.headerFields
        #expect(fields[.cookie] == "node=3" && fields[.userAgent]?.contains("Assent/") == true)
        #expect(fields[.authorization] == "DPoP access")
        #expect(HTTPField.Name("X-Inner").flatMap { fields[$0] } == "1")
        // The proof is for the call, and not for the message that it is sealed in.
        let proof = try #require(fields[.dpop])
        let verified = try DPoPProof.verify(
            proof, method: "POST", uri: url, accessToken: Secret("access"), clock: servers.clock)
        #expect(!verified.jti.isEmpty)

        // Pins are looked at last: what they keep back was sealed.
        let unpinned = try NIOTransport(configuration: NIOTransportConfiguration(trustRoots: .system, pins: [:]))
        bank.withLock { $0 = unpinned }
        events.clear()
        let count = listener.calls.count
        let refused = await #expect(throws: ResourceError.self) {
            try await assent.userClient.sendAuthenticatedRequest(payment)
        }
        #expect(refused?.number == 10101)
        #expect(events.all == order && listener.calls.count == count)
        await unpinned.shutdown()
    }
}
