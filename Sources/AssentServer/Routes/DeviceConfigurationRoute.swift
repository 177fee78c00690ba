import AssentCore
import AssentEngine
import Foundation
import HTTPTypes
import Hummingbird
import NIOCore

/// What installations of apps are told (docs/device-configuration.md).
extension OAuthRoutes {
    /// `device_config`.
    func deviceConfiguration(_ call: RouteCall<OAuthProvider>) async throws -> Response {
        let parameters = try call.request.parameters()
        let question = try DeviceConfigurations.Question(
            app: try parameters.required("app"), version: try parameters.required("version"),
            platform: try parameters.required("platform"))
        let known = call.request.headers[values: .ifNoneMatch].flatMap { value in
            value.split(separator: ",").map { $0.trimmingCharacters(in: .whitespaces) }
        }
        let told = call.service.configuration.deviceConfigurations
        guard let answer = try await told?.answer(question, known: known) else {
            return .oauth(404, "not_found", "There is no device configuration for this app.")
        }
        var response: Response
        if let document = answer.document {
            response = Response(
                status: .ok, headers: [.contentType: "application/jwt"],
                body: ResponseBody(byteBuffer: ByteBuffer(string: document)))
        } else {
            response = Response(status: .notModified)
        }
        response.headers[.eTag] = answer.tag
        response.headers[.cacheControl] = "no-cache"
        return response
    }
}
