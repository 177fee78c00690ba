import AssentCore
import HTTPTypes
import Hummingbird
import NIOCore

/// A service behind the gateway, on a free port, that keeps each call: below `/open` for everybody, below `/ledger` for
/// users. It answers with ``receipt`` and the content that it got; a path that ends in `/refused` with an error, and
/// one that ends in `/streamed` with a stream.
struct LedgerService {
    /// A call that was executed.
    struct Entry: Sendable, Hashable {
        let method: String
        let target: String
        let type: String?
        let body: [UInt8]
    }

    /// What stands in each reply, in a field and before the content.
    let receipt = SystemRandom().token()
    /// What stands in each error, in a field and before the content.
    let refusal = SystemRandom().token()
    /// What each stream ends with.
    let ending = SystemRandom().token()
    private let kept = Locked<[Entry]>([])
    private let port = Locked(0)
    private let filling = Locked(0)

    var entries: [Entry] { kept.withLock { $0 } }

    /// The content of the reply to a call.
    func answer(to body: [UInt8]) -> [UInt8] {
        Array(receipt.utf8) + body + [UInt8](repeating: 0x20, count: filling.withLock { $0 })
    }

    /// Makes all replies so much longer from now on.
    func lengthen(by count: Int) { filling.withLock { $0 = count } }

    /// The example's file with both routes.
    func routed(_ file: String) -> String {
        let upstream = "http://127.0.0.1:\(port.withLock { $0 })"
        let routes = """
              routes:
                - {name: open, path: /open, upstream: "\(upstream)", public: true}
                - name: ledger
                  path: /ledger
                  upstream: "\(upstream)"
                  realm: alpha
                  policySet: bank
                  scopes: [accounts]

            """
        let policy = """
                      - name: ledger
                        resources: ["https://localhost:*/ledger/*", "https://localhost:*/ledger/*?*"]
                        actionValues: {GET: true, POST: true}
                        subject: {type: AuthenticatedUsers}

                      - name: greet

            """
        return file.replacing("  routes:\n", with: routes).replacing("          - name: greet\n", with: policy)
    }

    /// Runs `body` beside the service, and ends it.
    static func run(_ body: (LedgerService) async throws -> Void) async throws {
        let service = LedgerService()
        let router = Router()
        for path: RouterPath in ["open/**", "ledger/**"] {
            router.get(path) { request, _ in try await service.respond(to: request) }
            router.post(path) { request, _ in try await service.respond(to: request) }
        }
        try await withLoopbackService(router.buildResponder()) { port in
            service.port.withLock { $0 = port }
            try await body(service)
        }
    }

    private func respond(to request: Request) async throws -> Response {
        let body = Array(buffer: try await request.body.collect(upTo: 1 << 20))
        let entry = Entry(
            method: request.method.rawValue, target: request.uri.string, type: request.headers[.contentType],
            body: body)
        kept.withLock { $0.append(entry) }
        let path = URLText.withoutQuery(entry.target)
        if path.hasSuffix("/refused") {
            return Response(
                status: .badRequest, headers: [.eTag: "\"\(refusal)\""],
                body: .init(byteBuffer: ByteBuffer(bytes: Array(refusal.utf8) + body)))
        }
        if path.hasSuffix("/streamed") {
            let pieces = [answer(to: body), Array(ending.utf8)]
            return Response(
                status: .ok,
                body: ResponseBody { writer in
                    for piece in pieces { try await writer.write(ByteBuffer(bytes: piece)) }
                    try await writer.finish(nil)
                })
        }
        return Response(
            status: .ok, headers: [.eTag: "\"\(receipt)\""],
            body: .init(byteBuffer: ByteBuffer(bytes: answer(to: body))))
    }
}
