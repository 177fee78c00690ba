import Hummingbird
import NIOCore

/// A service behind the gateway, on a free port: `GET /echo` has ``content``, `PUT /echo` answers with what it got.
struct EchoService {
    /// 1 MiB that no pattern of chunks repeats.
    static let content = (0..<(1 << 20)).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ $0 >> 16) }

    let port: Int

    /// The example's file with a route of users to this service.
    func routed(_ file: String) -> String {
        let route = """
              routes:
                - name: echo
                  path: /echo
                  upstream: http://127.0.0.1:\(port)
                  realm: alpha
                  policySet: bank
                  scopes: [accounts]

            """
        let policy = """
                      - name: echo
                        resources: ["https://localhost:*/echo"]
                        actionValues: {GET: true, PUT: true}
                        subject: {type: AuthenticatedUsers}

                      - name: greet

            """
        return file.replacing("  routes:\n", with: route).replacing("          - name: greet\n", with: policy)
    }

    /// Runs `body` beside the service, and ends it.
    static func run(_ body: (EchoService) async throws -> Void) async throws {
        let router = Router()
        router.get("echo") { _, _ in Response(status: .ok, body: .init(byteBuffer: ByteBuffer(bytes: content))) }
        router.put("echo") { request, _ in
            Response(status: .ok, body: .init(byteBuffer: try await request.body.collect(upTo: 2 << 20)))
        }
        try await withLoopbackService(router.buildResponder()) { port in try await body(EchoService(port: port)) }
    }
}
