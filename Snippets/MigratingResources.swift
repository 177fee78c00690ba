// What docs/migrating-resources.md shows as "after", compiled with each build: Scripts/check_prose.py compares the two.
import Assent
import Foundation
import HTTPTypes

struct Device: Decodable { let name: String }

/// Once, where the vendor's app builds and starts its client.
func begin(_ configuration: Assent.Configuration) throws -> Assent {
    let assent = try Assent(configuration)
    try assent.share()
    return assent
}

func userCall(_ show: @escaping @Sendable (String) -> Void) throws {
    let request = ResourceRequestFactory.makeResourceRequest(path: "devices", method: .get)
    try SharedUserClient.instance.sendAuthenticatedRequest(request) { response, error in
        if let error { return show("\(error.domain) \(error.number): \(error.detail)") }
        show("\(response?.status ?? 0): \(response?.data.count ?? 0) bytes")
    }
}

func implicitCall() async throws -> ResourceResponse {
    try await SharedUserClient.instance.implicitlyAuthenticate("ana", scopes: ["profile"])
    let greeting = try await SharedUserClient.instance.sendImplicitRequest(.get("greeting"))
    return greeting
}

func deviceCalls() async throws -> [ResourceResponse] {
    try await SharedDeviceClient.instance.authenticateDevice(scopes: ["app-data"])
    let details = try await SharedDeviceClient.instance.sendRequest(.get("app-info"))
    let status = try await SharedDeviceClient.instance.sendUnauthenticatedRequest(.get("status"))
    return [details, status]
}

func requests(_ photo: [UInt8]) -> [ResourceRequest] {
    let transfer = RequestBuilder().setPath("transfers").setMethod(.post).setParameters(["to": "Bob"]).build()
    var draft = MutableResourceRequest(transfer)
    draft.parametersEncoding = .formURL
    let form = ResourceRequest(
        path: "photos", method: .post,
        multipartData: [MultipartPart(name: "photo", data: photo, fileName: "me.png", contentType: "image/png")])
    return [transfer, draft.immutable, form]
}

func reading(_ response: ResourceResponse) throws -> [Device] {
    let devices = try JSONDecoder().decode([Device].self, from: Data(response.data))
    return devices
}
