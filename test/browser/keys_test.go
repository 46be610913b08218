package browser

import (
	"context"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
)

// insert writes a text where the cursor is, as a paste does.
func insert(text string) chromedp.Action[chromedp.Void] {
	return command(input.InsertText, input.InsertTextParams{Text: text})
}

// key presses a letter with modifiers: 2 is Ctrl.
func key(letter string, modifiers int64) chromedp.Action[chromedp.Void] {
	return chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		upper := letter[0] - 'a' + 'A'
		press := input.DispatchKeyEventParams{
			Type: input.DispatchKeyEventTypeRawKeyDown, Modifiers: modifiers, Key: letter,
			Code: "Key" + string(rune(upper)), WindowsVirtualKeyCode: int64(upper),
		}
		if letter == "a" {
			press.Commands = []string{"selectAll"}
		}
		if _, err := cdp.Call(ctx, t, input.DispatchKeyEvent, press); err != nil {
			return err
		}
		press.Type, press.Commands = input.DispatchKeyEventTypeKeyUp, nil
		_, err := cdp.Call(ctx, t, input.DispatchKeyEvent, press)
		return err
	})
}

// enter presses the Enter key.
func enter() chromedp.Action[chromedp.Void] {
	return command(input.DispatchKeyEvent, input.DispatchKeyEventParams{
		Type: input.DispatchKeyEventTypeKeyDown, Key: "Enter", Code: "Enter", Text: "\r", WindowsVirtualKeyCode: 13,
	})
}
