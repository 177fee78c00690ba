import ArgumentParser
import Assent

/// A sign-in that leaves nothing behind, for one request: what `assent login --stateless --then …` does.
struct StatelessRequest {
    /// What stands behind `--then`.
    let command: RequestCommand

    /// The journey; `nil` for the one of the client's file.
    var journey: String?

    /// Reads what stands behind `--then`, which is as behind `assent request`.
    ///
    /// - Throws: `ValidationError` for what cannot be read, and for what says whose call it is, or which client's.
    init(_ arguments: [String], journey: String? = nil) throws {
        do {
            command = try RequestCommand.parse(arguments)
        } catch {
            throw ValidationError("--then is followed by METHOD PATH …: \(RequestCommand.message(for: error))")
        }
        self.journey = journey
        guard command.kind == .user, !command.pin, command.ask == nil else {
            throw ValidationError(
                "--then is a request of the user who signs in: leave --as, --pin and --ask out behind it.")
        }
        guard command.client.config == nil, command.client.profile == "default" else {
            throw ValidationError("Name --config and --profile before --then.")
        }
    }

    /// Where answers are typed: where standard input is the request's content, nobody types there.
    var prompt: Prompt { command.content.dataFile == "-" ? Prompt(input: .terminal()) : Prompt() }

    /// Signs in, sends the request, forgets the sign-in, and writes what came back.
    ///
    /// - Throws: ``CommandFailure`` before anything is sent; what the sign-in and the request throw. The sign-in has
    ///   ended in each case.
    func run(
        _ profile: ClientProfile, _ answers: TerminalAnswers, transport: (any HTTPTransport)? = nil
    ) async throws {
        // What cannot be sent is told before anybody types a password.
        let request = try command.request()
        let place = command.download.map { DownloadPlace($0) }
        try place?.check()
        try command.check(base: profile.file.resourceBase)
        guard profile.file.registration != nil else {
            throw CommandFailure(
                "The client's file does not say registration, and only an installation that has registered signs users in "
                    + "without keeping anything. Nothing was sent. Name the file of an app with --config, and run "
                    + "'assent register' with it first.")
        }
        let profile = try command.shown(profile, request, on: answers.console)
        let assent = try profile.assent(transport: transport)
        let answer: RequestAnswer
        do {
            // Opens the vault, whose own errors say more than those of a sign-in.
            _ = try await assent.registration?.current()
            try await assent.authenticateStateless(journey ?? profile.file.journey) { try answers.answer(&$0) }
            answer = try await command.send(
                request, to: place, by: assent, profile, answers.prompt, answers.console)
        } catch {
            await assent.endLogin()
            await assent.shutdown()
            throw error
        }
        await assent.endLogin()
        await assent.shutdown()
        try command.report(answer, answers.console)
    }
}
