import Assent
import AssentTesting
import Foundation
import HTTPTypes
import Testing

@Suite("An app with a trust file")
struct TrustFileUseTests {
    private let servers = Servers()

    private func refusal(_ assent: Assent, _ url: String) async -> ResourceError.Code? {
        do {
            _ = try await assent.userClient.sendAuthenticatedRequest(.get(url))
            return nil
        } catch {
            return error.code
        }
    }

    @Test("Calls go to the hosts that it names, with the credentials that it gives them, while their pins are valid")
    func calls() async throws {
        let file = try await servers.trustFile(sends: ["user"])
        let assent = try servers.assent {
            $0.trust = file
            $0.resources = [:]
        }
        #expect(assent.trustVersion == 1)
        try await assent.journey("Login") { step in
            step[NameCallback.self]?.name = "ana"
            return .next
        }
        #expect(await refusal(assent, "https://api.bank.example/accounts") == nil)
        let sent = servers.sent("/accounts")
        #expect(sent.count == 1 && sent.first?.request.headerFields[.authorization] != nil)
        #expect(await refusal(assent, "https://other.bank.example/accounts") == .hostRefused)
        servers.clock.advance(by: 3600)
        #expect(await refusal(assent, "https://api.bank.example/accounts") == .trustExpired)
        #expect(servers.sent("bank.example").count == 1)
        #expect(await assent.updateTrust() == 1)
    }

    @Test(
        "3, 35: Where it says that payloads are always sealed, nobody can say otherwise; else the server decides",
        arguments: [
            ("always", nil, true), ("always", "off", true), ("server", "on", true), ("server", "off", false),
            ("server", nil, true),
        ] as [(String, String?, Bool)])
    func sealed(mode: String, says: String?, isSealed: Bool) async throws {
        let server = SealingServer()
        let assent = try await server.app(mode: mode, says: says, of: servers)
        let request = ResourceRequest.get("\(SealedListener.origin)/rates")
        for _ in 1...2 { _ = try await assent.deviceClient.sendUnauthenticatedRequest(request) }
        #expect(server.plain.withLock { $0.count } == (isSealed ? 0 : 2))
        #expect(server.listener.calls.map(\.0.path) == (isSealed ? ["/rates", "/rates"] : []))
        // It is asked once in five minutes: whether the app may call at all, it says in any case.
        let asked = server.asked.withLock { $0 }
        #expect(asked.count == 1 && asked.first?.contains("/device_config?app=app&version=0&platform=linux") == true)
    }

    private struct Traced: IntegrityProbe {
        let kind = IntegrityKind.debugger
        func finding() -> String? { "Another program traces this process." }
    }

    @Test("Of the app's controls and those of the file the stricter one holds")
    func controls() async throws {
        for (own, signed, isRefused) in [
            (IntegrityControl.off, "refuse", true), (.report, "refuse", true), (.refuse, "off", true),
            (.refuse, "report", true), (.report, "report", false), (.off, "report", false), (.off, "off", false),
        ] {
            let file = try await servers.trustFile(sends: [], debugger: signed, development: true)
            let assent = try servers.assent {
                $0.trust = file
                $0.integrity.probes = [Traced()]
                $0.integrity.controls.debugger = own
            }
            let before = servers.sent("bank.example").count
            let answer = try? await assent.deviceClient.sendUnauthenticatedRequest(
                .get("https://api.bank.example/status"))
            #expect((answer == nil) == isRefused, "\(own), \(signed)")
            #expect(servers.sent("bank.example").count == (isRefused ? before : before + 1))
        }
    }

    @Test("Probes are not replaced beside a file that is not for development")
    func replaced() async throws {
        let file = try await servers.trustFile(sends: [])
        #expect(throws: TokenError.self) {
            try servers.assent {
                $0.trust = file
                $0.integrity.probes = []
            }
        }
    }

    @Test("A call waits for a later file no longer than it may take")
    func patience() async throws {
        let source = "https://updates.bank.example/trust"
        let file = try await servers.trustFile(sends: ["user"], source: source)
        let (stream, gate) = AsyncStream.makeStream(of: Void.self)
        let held = Task { for await _ in stream {} }
        let assent = try servers.assent { configuration in
            configuration.trust = file
            configuration.resources = [:]
            guard let inner = configuration.transport else { return }
            configuration.transport = InMemoryTransport { exchange in
                guard exchange.request.url?.hasPrefix(source) == true else {
                    return try await inner.send(
                        HTTPCall(
                            exchange.request.method, url: exchange.request.url ?? "",
                            headerFields: exchange.request.headerFields))
                }
                await held.value
                return HTTPReply(HTTPResponse(status: .notFound))
            }
        }
        // All pins have ended.
        servers.clock.advance(by: 3600)
        let isOver = Locked(false)
        let call = Task { () -> ResourceError.Code? in
            defer { isOver.withLock { $0 = true } }
            do {
                _ = try await assent.deviceClient.sendUnauthenticatedRequest(.get("https://api.bank.example/status"))
                return nil
            } catch let error as ResourceError {
                return error.code
            } catch {
                Issue.record(error)
                return nil
            }
        }
        while !isOver.withLock({ $0 }) {
            if servers.clock.sleeperCount > 0 { servers.clock.advance(by: 60) }
            await Task.yield()
        }
        #expect(await call.value == .timedOut)
        #expect(servers.sent("bank.example").isEmpty)
        gate.finish()
        await assent.shutdown()
    }

    @Test("A host that gets no credential is not called for the user")
    func withheld() async throws {
        let file = try await servers.trustFile(sends: ["device"])
        let assent = try servers.assent {
            $0.trust = file
            $0.resources = [:]
        }
        #expect(await refusal(assent, "https://api.bank.example/accounts") == .hostRefused)
        #expect(servers.sent("bank.example").isEmpty)
    }
}
