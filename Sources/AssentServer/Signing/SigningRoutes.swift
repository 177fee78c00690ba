import AssentCore
import AssentEngine
import AssentSigningProtocol
import HTTPTypes
import Hummingbird
import Logging

/// What answers below `/signing` besides the calls of users and relying parties: calls of devices, and evidence.
struct SigningRoutes: Sendable {
    func answer(_ device: DeviceCall, _ call: RouteCall<SigningProvider>) async throws -> Response {
        let type = call.request.headers[.contentType]?.prefix { $0 != ";" }.lowercased()
        guard type == "application/jose" else {
            throw RequestError(415, "The request's media type must be application/jose.")
        }
        let proofs = call.request.headers[values: .signingProof]
        guard proofs.count <= 1 else { throw SigningRefusal(.badProof) }
        return .jose(
            try await call.provider.door.answer(
                device, proof: proofs.first, body: try await call.body(), address: call.client.limitKey ?? "none"))
    }

    func evidence(_ call: RouteCall<SigningProvider>) async throws -> Response {
        let reader: SigningEvidence.Reader =
            if case .confidentialClient(let client) = call.caller {
                .client(client.id)
            } else {
                .caller(SigningCaller(try call.session))
            }
        return .json(200, bytes: try await call.provider.evidence.bundle(call.id, for: reader))
    }
}

/// How `/signing` answers: refusals are problem documents with the protocol's codes.
struct SigningWire: RouteWire {
    static let readsRealmParameter = false

    let logger: Logger

    func trusted(_ origins: WebOrigins, realm: String) -> TrustedOrigins? { origins.json(realm: realm) }

    func audience(of service: SigningProvider) -> [String] { [service.settings.issuer.name] }

    func response(refusing error: any Error, to request: Request, of rule: RouteRule?, realm: String?) -> Response {
        switch error {
        case let error as RequestError: return .signing(error)
        case let error as SigningRefusal: return .signing(error)
        case let refusal as RouteRefusal: return Self.response(refusal, of: rule)
        case let error as EngineError where error.code.isAboutSealing: return .problem(error)
        default:
            logger.error("signing failed", metadata: ["error": "\(error)"])
            return .signing(SigningRefusal(answering: error))
        }
    }

    private static func response(_ refusal: RouteRefusal, of rule: RouteRule?) -> Response {
        switch refusal {
        case .noRoute: .signing(SigningRefusal(.notFound))
        case .unknownRealm:
            .signing(SigningRefusal(.notFound, "This realm does not exist, or offers no transaction signing."))
        case .method: .signing(RequestError(405, "Use \(rule?.allow ?? "")."))
        case .forgery(let reason): .signing(SigningRefusal(.forbidden, reason))
        case .sessionRequired, .tokenRequired: .signing(SigningRefusal(.unauthorized))
        case .tokenRefused(let refusal): .signing(refusal)
        case .foreignSession: .signing(SigningRefusal(.forbidden))
        case .kind: .problem(EngineError(.tokenKind))
        }
    }

    /// Also an error brings a device the nonce for its next try.
    func complete(_ response: inout Response, of rule: RouteRule, service: SigningProvider) {
        guard rule.caller == .device || rule.path == IssuerPath.configuration.rawValue else { return }
        response.headers[.signingNonce] = service.door.nonce()
    }
}

extension RouteCall where Service == SigningProvider {
    var provider: SigningProvider { service }
}

extension JSONObject {
    /// A member that is a text, if it is there.
    func signingText(_ name: String) throws(SigningRefusal) -> String? {
        guard let value = self[name] else { return nil }
        guard let text = value.string else { throw SigningRefusal(.invalidRequest, "\(name) must be a text.") }
        return text
    }

    /// Refuses members that nobody reads.
    func allow(_ names: Set<String>) throws(SigningRefusal) {
        for member in members where !names.contains(member.name) {
            throw SigningRefusal(.invalidRequest, "There is a member that this request does not have.")
        }
    }
}
