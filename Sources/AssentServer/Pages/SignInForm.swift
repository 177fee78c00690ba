import AssentCore
import AssentEngine
import HTTPTypes
import Hummingbird

/// What the page's form has posted.
struct SignInForm {
    private static let limit = 64 << 10

    /// The pointer to the page's stored step; `nil` when the journey is to begin.
    let authID: String?

    /// Whether the user wants to go back without answering.
    let isCancelled: Bool

    /// Whether the user wants to sign out, on the page that says that they are signed in.
    let isSignOut: Bool

    private let bytes: [UInt8]
    private let types: [String]
    private let form: FormItems

    /// Reads the form.
    ///
    /// - Throws: ``RequestError`` 400, 413, 415.
    init(_ request: Request) async throws {
        let type = request.headers[.contentType]?.prefix { $0 != ";" }.lowercased() ?? ""
        guard type == FormEncoding.mediaType else {
            throw RequestError(415, "The media type must be \(FormEncoding.mediaType).")
        }
        bytes = try await request.bytes(upTo: Self.limit)
        do {
            form = try FormEncoding.parse(bytes, limits: .init(bytes: Self.limit, items: 64))
            authID = try form.single("authId")
            isCancelled = try form.single("cancel") != nil
            isSignOut = try form.single("signout") != nil
            types = try (form.single("types") ?? "").split(separator: " ").map(String.init)
        } catch {
            throw RequestError(400, "The form cannot be read.")
        }
        guard types.count <= 32, form.duplicateNames.isEmpty else {
            throw RequestError(400, "The form cannot be read.")
        }
    }

    /// The name that the user has typed; `nil` when the page did not ask for it.
    var typedName: String? {
        types.firstIndex(of: CallbackKind.name.rawValue).flatMap { form[InputName(place: $0 + 1).text] }
    }

    /// The answer to the page; `nil` when the journey is to begin. What each callback must be, the engine knows itself.
    var answer: PageAnswer? {
        guard let authID else { return nil }
        let callbacks = types.enumerated().map { index, type in
            let name = InputName(place: index + 1)
            return ReturnedCallback(
                kind: CallbackKind(rawValue: type),
                inputs: form[name.text].map { [ReturnedInput(name: name, value: .text($0))] })
        }
        return PageAnswer(authID: authID, callbacks: callbacks, bytes: bytes)
    }
}
