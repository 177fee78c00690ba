// The counterparts of docs/migrating-journeys.md, so that the page cannot say what does not compile: a test compares
// the two.
import Assent
import Logging

// What an app brings along: its screens.
protocol JourneyScreen: Sendable {
    func name(_ prompt: String) async throws -> String
    func password(_ prompt: String) async throws -> String
    func code(_ prompt: String) async throws -> String
    func show(_ text: String) async
}

/// One node at a time, for an app that draws its own screens.
func walk(_ assent: Assent, on screen: some JourneyScreen, logger: Logger) async throws {
    var node: JourneyNode = await assent.journey.start("sdkUsernamePasswordJourney")
    while true {
        switch node {
        case .continue(var step):
            if let refusal = step.refusal { await screen.show(refusal.messages.first ?? "That was not accepted.") }
            if let waiting = step.waiting { await screen.show(waiting.text) }
            try await answer(&step, on: screen)
            node = await assent.journey.next(step)
        case .error(let error):
            logger.info("the server said no", metadata: ["code": "\(error.code)", "status": "\(error.status)"])
            await screen.show(error.message.isEmpty ? error.detail : error.message)
            return look(at: error)
        case .failure(let failure):
            logger.error("the sign-in failed", metadata: ["code": "\(failure.code)"])
            if let cause = failure.transportError { logger.error("there was no reply", metadata: ["why": "\(cause)"]) }
            return await screen.show(failure.isTransient ? "Try again later." : failure.detail)
        case .success(let session):
            if let greeting = session.details["greeting"]?.string { await screen.show(greeting) }
            return await screen.show("signed in to \(session.realm), next is \(session.successURL)")
        }
    }
}

/// The raw reply, for what only a server of one's own says.
func look(at error: JourneyError) { _ = error.body["detail"]?["failureUrl"]?.string }

/// Callback by callback, in the order of the page.
func answer(_ step: inout JourneyStep, on screen: some JourneyScreen) async throws {
    for index in step.callbacks.indices {
        switch step.callbacks[index] {
        case var callback as NameCallback:
            callback.name = try await screen.name(callback.prompt)
            step.callbacks[index] = callback
        case var callback as PasswordCallback:
            callback.password = try await screen.password(callback.prompt)
            step.callbacks[index] = callback
        case let callback as UnknownCallback: await screen.show(callback.fields.type)
        default: break
        }
    }
}

/// The same by type, walked to its end.
func signIn(_ assent: Assent, on screen: some JourneyScreen) async throws -> Session {
    try await assent.journey("sdkUsernamePasswordJourney") { step in
        step[NameCallback.self]?.name = try await screen.name("Name")
        step[PasswordCallback.self]?.password = try await screen.password("Password")
        step[TextInputCallback.self, at: 1]?.text = try await screen.code("The second code")
        return .next
    }
}

/// A callback type of the app's own.
struct LanguageCallback: JourneyCallback {
    static let type = "LanguageCallback"
    let fields: CallbackFields
    var country = "CH"
    init(_ fields: CallbackFields) { self.fields = fields }
    var answers: [CallbackAnswer?] { [.text(Secret(country))] }
}

func teach(_ configuration: inout Assent.Configuration) {
    configuration.callbacks = CallbackTypes.all.adding(LanguageCallback.self)
}
