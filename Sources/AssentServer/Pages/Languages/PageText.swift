/// What the hosted pages say themselves, in English. Every language is a table with these; what journeys, policies and
/// scopes say comes from the operator's file. A word in braces is filled in.
enum PageText: String, Sendable, Hashable, CaseIterable {
    // Steps
    case signIn = "Sign in"
    case approveRequest = "Approve a request"
    case approveThis = "Approve this request?"
    case confirmIdentity = "Confirm that it is you"
    case continueTo = "to continue to {app}"
    case continueButton = "Continue"
    case cancel = "Cancel"
    case startAgain = "Start again"
    case signOut = "Sign out"
    case error = "Error: {title}"
    case userName = "User name"
    case password = "Password"
    case answer = "Answer"
    case choose = "Choose"

    // An approval
    case beginning = "A service asks for your approval. You will see what it is before you decide."
    case askedBy = "Asked for by {app}."
    case terms = "For the account {user}, until {end}."

    // Consent
    case allowTitle = "Allow {app}?"
    case asksForAccess = "{app} asks for access to your account {user}."
    case itMay = "It may"
    case until = "Until"
    case untilDate = "{end}, unless you take it back before"
    case answerGoesTo = "The answer goes to"
    case appOnDevice = "an app on this device ({scheme})"
    case allow = "Allow"
    case deny = "Do not allow"
    case scopeOpenID = "Know that it is you"
    case scopeProfile = "See your name and profile"
    case scopeEmail = "See your e-mail address"
    case scopePhone = "See your phone number"
    case scopeAddress = "See your address"
    case scopeOffline = "Keep its access after you have signed out"

    // Signing out
    case signOutTitle = "Sign out?"
    case signOutText = "You are signed in as {user}."
    case staySignedIn = "Stay signed in"

    // A link that an app opens
    case linkTitle = "Sign in this browser?"
    case linkText = "This browser will be signed in as {user} and goes on to {place}."
    case linkReplaces = "{user} is signed in in this browser already. That ends here if you continue."
    case linkReplacesSomebody = "Somebody is signed in in this browser already. That ends here if you continue."
    case linkOnlyIfYou =
        "Continue only if this is you, and you have just come from your app. If somebody has sent you this link, close the page."
    case linkEnded = "This link is no longer good"
    case linkEndedText = "A link can be used once, and for one minute. Open it again from the app."

    // The way back, and what stands at the base URL
    case goingBack = "Going back"
    case ledBack = "You are being led back to where you came from."
    case welcome =
        "This server signs you in, and asks you before something is done in your name. Apps send you here when they need it."

    // Above a form
    case notAccepted = "That was not accepted. Please try again."
    case failed = "That did not work. Please check what you have entered and try again."
    case inactive = "This account is not active."
    case tookTooLong = "This took too long. Please start again."
    case locked = "This account is locked for now. Try again later."
    case differentUser = "You are signed in as somebody else."
    case answeredBefore = "You had answered that page before. This is where your sign-in stands."
    case noLongerGood =
        "That page is no longer good, or your browser keeps no cookies from here. Please start again."

    // Pages that only say something
    case signedIn = "You are signed in"
    case signedOut = "You are signed out"
    case closePage = "You can close this page."
    case approved = "Approved"
    case approvedText = "Go back to the app: it can do now what you have approved."
    case approvedUnsentText =
        "Nothing has been sent yet. Go back to the app or the page that asked you, and send it once more: it is let through once."
    case backTo = "Back to {place}"
    case used = "Approved before"
    case usedText = "You have approved this, and the app has sent it. Go back to the app to see what came of it."
    case notApproved = "Not approved"
    case declinedText = "You declined it. Nothing was done. Go back to the app to try again."
    case unansweredText =
        "Nobody answered on your device in time. Nothing was done. Go back to the app to try again."
    case noDeviceText =
        "You have no device that can approve this. Nothing was done. Set up a device, then go back to the app to try again."
    case wrongAnswerText =
        "An answer was wrong, here or on your device. Nothing was done. Go back to the app to try again."
    case cannotApprove = "This request cannot be approved"
    case cannotApproveText =
        "It was begun before, it has expired, or you are not signed in here as the user who made it. Go back to the app and try again."
    case tooLong = "This took too long"
    case tooLongText = "Please start again."
    case notSignedIn = "Not signed in"
    case notHere = "This cannot be done here"
    case notHereText = "There is no such way to sign in."
    case notAvailable = "Not available"
    case notAvailableText = "The server cannot answer now. Please try again in a moment."
    case outcomeUnknownText = "It is not known whether this was done. Please look before you do it again."
    case doesNotWork = "This does not work"
    case badLink = "This link does not work"
    case badLinkText =
        "The app that sent you here asks for something that it may not have, or its address is not known here. Go back to the app. The people who make it need to know: {reason}"
    case outOfDate = "This page is out of date"
    case outOfDateText =
        "It was answered before, or the link that led here is damaged. Please start again."
    case nothingHere = "There is nothing here"
    case nothingHereText =
        "The address names a realm that this server does not have. Check it, or go back to the app that you came from."
    case foreignTarget = "This link is not good"
    case foreignTargetText =
        "It would lead you to a place that does not belong to this server. Go back to the app that you came from."
    case foreignForm = "This form is not ours"
    case foreignFormText =
        "It was sent from another site, or your browser does not say where it was sent from. Go back to the app that you came from."
    case needsApp = "This needs an app"
    case needsAppText = "This way to sign in asks for something that this page cannot show."
}
